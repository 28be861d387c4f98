"""The emulator's tokens bear no signature; everything else about them is checked like Google's."""

import base64
import json
from typing import Any

import jwt
import pytest

from connector.identity.firebase_tokens import IdTokenVerifier, parse_certificates
from connector.identity.provider import SignInRefused
from tests.oauth.stand import Clock

PROJECT = "demo-x"


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(clock: Clock) -> IdTokenVerifier:
    return IdTokenVerifier(PROJECT, frozenset({"google"}), None, clock)


def claims(clock: Clock, **changes: Any) -> dict[str, Any]:
    now = int(clock().timestamp())
    return {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": "ana",
        "exp": now + 3600,
        "iat": now,
        "auth_time": now,
        "email": "ana@example.org",
        "email_verified": True,
        "firebase": {"sign_in_provider": "google.com"},
    } | changes


def unsigned(body: dict[str, Any]) -> str:
    return f"{segment({'alg': 'none', 'typ': 'JWT'})}.{segment(body)}."


def test_the_emulators_token_says_who_it_is(verifier: IdTokenVerifier, clock: Clock) -> None:
    token = verifier.verify(unsigned(claims(clock)))
    assert (token.subject, token.email, token.is_email_verified) == ("ana", "ana@example.org", True)


@pytest.mark.threat("FB-04")
@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://securetoken.google.com/other"},
        {"aud": "other"},
        {"aud": [PROJECT]},
        {"sub": ""},
        {"sub": 7},
        {"exp": 1},
        {"firebase": {"sign_in_provider": "password"}},
    ],
)
def test_without_a_signature_the_claims_are_checked_all_the_same(
    verifier: IdTokenVerifier, clock: Clock, changes: dict[str, Any]
) -> None:
    with pytest.raises(SignInRefused):
        verifier.verify(unsigned(claims(clock, **changes)))


def test_where_tokens_are_unsigned_a_signed_one_is_out_of_place(
    verifier: IdTokenVerifier, clock: Clock
) -> None:
    signed = jwt.encode(claims(clock), "x" * 32, "HS256")
    for token in (signed, unsigned(claims(clock)) + "AAAA"):
        with pytest.raises(SignInRefused):
            verifier.verify(token)


@pytest.mark.threat("FB-03")
@pytest.mark.parametrize("document", [{}, {"k": "no certificate"}, {"k": 7}])
def test_a_document_without_certificates_is_no_answer(document: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AttributeError)):
        parse_certificates(document)
