"""Access tokens: what is in them, and every forgery that must fail."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from oauth import access_tokens, keys
from oauth.access_tokens import VerifiedTokens
from oauth.errors import InvalidToken
from oauth.server import AuthorizationServer
from tests.oauth.stand import ISSUER, RESOURCE, START, Clock, Host, MemoryRecords, make_server

NOW = int(START.timestamp())


def encode(data: object) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(segment: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(segment + "=="))
    return value


@pytest.fixture
def token(host: Host) -> str:
    access_token: str = host.connect()["access_token"]
    return access_token


@pytest.fixture
def sign(server: AuthorizationServer, token: str) -> Callable[..., str]:
    """Signs with our own key whatever a test wants."""
    claims = decode(token.split(".")[1])

    def sign(header: dict[str, Any] | None = None, **changes: Any) -> str:
        key = server.keys.signing_key()
        usual = {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
        altered = {name: value for name, value in (claims | changes).items() if value is not None}
        return jwt.encode(usual | (header or {}), altered, key.key, default_type=None)

    return sign


def refuse(server: AuthorizationServer, token: str) -> None:
    with pytest.raises(InvalidToken):
        access_tokens.verify(server, token)


@pytest.mark.threat("AU-06")
def test_a_token_names_issuer_resource_client_subject_and_expiry(host: Host, token: str) -> None:
    header, claims = (decode(segment) for segment in token.split(".")[:2])
    assert header.keys() == {"alg", "typ", "kid"}
    assert (header["alg"], header["typ"]) == ("ES256", "at+jwt")
    assert claims.keys() == {"iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti", "grant_id"}
    assert (claims["iss"], claims["aud"], claims["client_id"]) == (ISSUER, RESOURCE, host.client_id)
    assert (claims["iat"], claims["exp"]) == (NOW, NOW + 3600)


@pytest.mark.threat("JW-01")
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None])
@pytest.mark.parametrize("keep_signature", [True, False])
def test_unsigned_tokens_are_refused(
    server: AuthorizationServer, token: str, alg: str | None, keep_signature: bool
) -> None:
    header, claims, signature = token.split(".")
    forged = encode(decode(header) | {"alg": alg})
    refuse(server, f"{forged}.{claims}.{signature if keep_signature else ''}")


@pytest.mark.threat("JW-02")
def test_hmac_with_public_or_weak_keys_is_refused(server: AuthorizationServer, token: str) -> None:
    header, claims, _ = token.split(".")
    public = server.keys.signing_key().key
    jwk = json.dumps(server.keys.public_jwks()["keys"][0]).encode()
    secrets = [public.as_pem(private=False), jwk, b"", b"secret", ISSUER.encode(), RESOURCE.encode()]
    for secret in secrets:
        signed = encode(decode(header) | {"alg": "HS256"}) + "." + claims
        refuse(server, f"{signed}.{encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}")


@pytest.mark.threat("JW-03")
@pytest.mark.parametrize("member", ["jwk", "jku", "x5u", "x5c"])
def test_a_key_that_comes_with_the_token_is_not_used(
    server: AuthorizationServer, token: str, member: str
) -> None:
    header, claims, _ = token.split(".")
    attacker = ECKey.generate_key("P-256", private=True)
    signed = f"{encode(decode(header) | {member: attacker.as_dict(private=False)})}.{claims}"
    own = jwt.encode({"alg": "ES256"}, decode(claims), attacker).split(".")[2]
    refuse(server, f"{signed}.{own}")


@pytest.mark.threat("JW-03")
@pytest.mark.parametrize(
    "kid", ["https://evil.example/key", "../../dev/null", "' OR 1=1 --", {"a": 1}, None, ["x"], 7, "k" * 5000]
)
def test_a_key_id_is_ours_or_nothing(server: AuthorizationServer, token: str, kid: object) -> None:
    header, claims, _ = token.split(".")
    attacker = ECKey.generate_key("P-256", private=True)
    forged = jwt.encode({"alg": "ES256", "typ": "at+jwt"}, decode(claims), attacker)
    refuse(server, f"{encode(decode(header) | {'kid': kid})}.{claims}.{forged.split('.')[2]}")


@pytest.mark.threat("JW-03")
def test_a_stranger_cannot_sign_under_our_key_id(server: AuthorizationServer, token: str) -> None:
    header, claims, _ = token.split(".")
    attacker = ECKey.generate_key("P-256", private=True)
    refuse(server, jwt.encode(decode(header), decode(claims), attacker))


@pytest.mark.threat("JW-04")
def test_any_change_to_a_token_is_refused(server: AuthorizationServer, token: str) -> None:
    header, claims, signature = token.split(".")
    changes = {"scope": "memory:delete", "exp": NOW + 99999, "sub": "owner-2", "grant_id": "0" * 32}
    for name, value in changes.items():
        refuse(server, f"{header}.{encode(decode(claims) | {name: value})}.{signature}")
    for broken in (signature[:-1], "A" * 86, "", signature + "A", signature[::-1], signature.swapcase()):
        refuse(server, f"{header}.{claims}.{broken}")


@pytest.mark.threat("JW-04")
def test_idle_bits_of_the_last_character_are_not_idle(server: AuthorizationServer, token: str) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [token[:-1] + character for character in alphabet if character != token[-1]]
    assert len({base64.urlsafe_b64decode(other.split(".")[2] + "==") for other in [*others, token]}) == 4
    for other in others:
        refuse(server, other)


@pytest.mark.threat("JW-05")
@pytest.mark.threat("BR-03")
@pytest.mark.parametrize(
    "garbage",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "bnVsbA.bnVsbA.bnVsbA",
        "W10.W10.W10",
        "é.é.é",
        "\ud800.a.b",
        "_w._w._w",
        "a.b.c.d.e",
        "x" * 16_000,
        "eyJhbGciOiJkaXIi.." + "A" * 40 + ".A.A",
    ],
)
def test_garbage_is_refused(server: AuthorizationServer, garbage: str) -> None:
    refuse(server, garbage)


@pytest.mark.threat("JW-05")
def test_deep_headers_are_refused(server: AuthorizationServer, token: str) -> None:
    deep = encode(b"[" * 1500 + b"]" * 1500)
    refuse(server, f"{deep}.{deep}.{token.split('.')[2]}")
    refuse(server, f"{encode(b'[' * 2200)}.e30.{token.split('.')[2]}")


@pytest.mark.threat("JW-07")
@pytest.mark.threat("AU-08")
@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example"},
        {"iss": ISSUER + "/"},
        {"aud": "https://other.example/mcp"},
        {"aud": [RESOURCE, "https://other.example/mcp"]},
        {"aud": ISSUER},
        {"exp": NOW},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"exp": 1e400},
        {"exp": 10**20},
        {"iat": NOW + 61},
        {"iat": None},
        {"nbf": NOW + 61},
        {"nbf": "soon"},
        {"sub": None},
        {"sub": 7},
        {"client_id": None},
        {"jti": None},
        {"scope": ["memory:read"]},
        {"grant_id": None},
        {"padding": "x" * 4096},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_signed_by_us_but_wrong(
    server: AuthorizationServer, sign: Callable[..., str], changes: dict[str, Any]
) -> None:
    assert access_tokens.verify(server, sign())
    refuse(server, sign(**changes))


@pytest.mark.threat("JW-07")
@pytest.mark.parametrize(
    "header", [{"typ": "JWT"}, {"typ": "AT+JWT"}, {"cty": "x"}, {"crit": ["b64"], "b64": True}]
)
def test_signed_by_us_but_no_access_token(
    server: AuthorizationServer, sign: Callable[..., str], header: dict[str, Any]
) -> None:
    refuse(server, sign(header))


@pytest.mark.threat("CL-01")
def test_clocks_may_differ_by_a_minute_but_expiry_is_strict(
    server: AuthorizationServer, sign: Callable[..., str], clock: Clock
) -> None:
    assert access_tokens.verify(server, sign(iat=NOW + 60, nbf=NOW + 60))
    token = sign()
    clock.advance(seconds=3599)
    assert access_tokens.verify(server, token)
    clock.advance(seconds=1)
    refuse(server, token)


@pytest.mark.threat("AU-07")
def test_a_token_of_another_installation_is_refused(token: str, clock: Clock) -> None:
    elsewhere = make_server(MemoryRecords(clock), clock, state_key=b"x" * 32)
    refuse(elsewhere, token)


def test_a_verified_token_is_remembered_until_it_expires(
    server: AuthorizationServer, token: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = VerifiedTokens(server, capacity=2)
    first = verified.verify(token)
    calls: list[str] = []

    def verify(server: AuthorizationServer, token: str) -> access_tokens.AccessToken:
        calls.append(token)
        return first

    monkeypatch.setattr(access_tokens, "verify", verify)
    assert verified.verify(token) is first
    assert calls == []
    clock.advance(hours=1)
    verified.verify(token)
    assert calls == [token]
    clock.advance(days=-1)
    verified.verify(token)
    assert calls == [token, token]


def test_the_memory_of_tokens_is_bounded(host: Host, server: AuthorizationServer) -> None:
    verified = VerifiedTokens(server, capacity=2)
    tokens = [host.connect()["access_token"] for _ in range(3)]
    first = verified.verify(tokens[0])
    for token in tokens[1:]:
        verified.verify(token)
    assert verified.verify(tokens[0]) is not first
    last = verified.verify(tokens[2])
    assert verified.verify(tokens[2]) is last
    verified.forget_all()
    assert verified.verify(tokens[2]) is not last


def test_refused_tokens_are_not_remembered(server: AuthorizationServer) -> None:
    verified = VerifiedTokens(server)
    for _ in range(2):
        with pytest.raises(InvalidToken):
            verified.verify("a.b.c")


def test_rotation_reaches_a_process_that_has_not_heard_of_it(
    host: Host, server: AuthorizationServer, records: MemoryRecords, clock: Clock
) -> None:
    other = make_server(records, clock)
    access_tokens.verify(other, host.connect()["access_token"])
    clock.advance(seconds=20)
    keys.rotate(server)
    clock.advance(seconds=61)
    assert access_tokens.verify(other, host.connect()["access_token"])
