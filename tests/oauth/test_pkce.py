"""PKCE: S256 or nothing."""

import base64
import hashlib

import pytest

from oauth import pkce
from oauth.errors import InvalidGrant, InvalidRequest
from tests.oauth.stand import CHALLENGE, VERIFIER


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def test_the_example_of_rfc_7636_appendix_b() -> None:
    assert pkce.check_challenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "S256") == CHALLENGE
    pkce.verify("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", CHALLENGE)


@pytest.mark.parametrize("verifier", ["A" * 43, "-._~" * 32])
def test_the_shortest_and_the_longest_verifier(verifier: str) -> None:
    pkce.verify(verifier, challenge_of(verifier))


@pytest.mark.threat("PK-02")
@pytest.mark.parametrize("method", [None, "plain", "s256", "S512", "none", "S256 "])
def test_only_s256_spelled_out(method: str | None) -> None:
    with pytest.raises(InvalidRequest):
        pkce.check_challenge(CHALLENGE, method)


@pytest.mark.threat("PK-01")
@pytest.mark.threat("PK-03")
@pytest.mark.parametrize(
    "challenge",
    [None, "x", "A" * 42, "A" * 44, "A" * 129, "A" * 42 + "=", "A" * 42 + "+", "A" * 42 + " ", "A" * 42 + "é"]
    + ["A" * 43 + "\n", "A" * 42 + "."],
)
def test_a_malformed_challenge_is_refused(challenge: str | None) -> None:
    with pytest.raises(InvalidRequest):
        pkce.check_challenge(challenge, "S256")


@pytest.mark.threat("PK-04")
@pytest.mark.threat("PK-05")
@pytest.mark.parametrize(
    "verifier", [None, "x" * 43, CHALLENGE, VERIFIER[:-1] + "l", VERIFIER.swapcase(), VERIFIER + "="]
)
def test_a_wrong_verifier_is_refused(verifier: str | None) -> None:
    with pytest.raises(InvalidGrant):
        pkce.verify(verifier, CHALLENGE)


@pytest.mark.threat("PK-06")
@pytest.mark.parametrize(
    "verifier",
    [
        "x",
        "x" * 42,
        "x" * 129,
        "x" * 42 + "+",
        "x" * 42 + "é",
        "x" * 43 + "\n",
        " " + "x" * 43,
        "x" * 42 + "\x00",
    ],
)
def test_a_malformed_verifier_is_refused_even_when_its_hash_matches(verifier: str) -> None:
    with pytest.raises(InvalidGrant):
        pkce.verify(verifier, challenge_of(verifier))
