"""Authentication by a signed assertion: what proves a client, and what only looks like it."""

import base64
import hmac
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from oauth.client_assertion import ASSERTION_TYPE
from oauth.server import AuthorizationServer
from tests.oauth.stand import ISSUER, REDIRECT_URI, START, Clock, Host, error
from tests.oauth.web import Web

URL = "https://client.example/metadata.json"
JWKS_URL = "https://client.example/jwks.json"
NOW = int(START.timestamp())
INVALID_CLIENT = (401, "invalid_client")

Sign = Callable[..., dict[str, str | None]]


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "first"}, private=True)


@pytest.fixture
def sign(key: RSAKey) -> Sign:
    """The parameters of an assertion, with whatever a test wants in it."""
    numbers = iter(range(1000))

    def sign(by: Any = key, header: dict[str, Any] | None = None, **changes: Any) -> dict[str, str | None]:
        usual = {
            "iss": URL,
            "sub": URL,
            "aud": ISSUER,
            "exp": NOW + 60,
            "iat": NOW,
            "jti": str(next(numbers)),
        }
        claims = {name: value for name, value in (usual | changes).items() if value is not None}
        protected = {"alg": "RS256", "kid": "first"} | (header or {})
        assertion = jwt.encode(
            {name: value for name, value in protected.items() if value is not None},
            claims,
            by,
            algorithms=[str(protected["alg"])],
        )
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion, "client_id": None}

    return sign


def publish(web: Web, key: RSAKey | ECKey, **members: Any) -> None:
    usual = {
        "client_id": URL,
        "client_name": "Signing",
        "redirect_uris": [REDIRECT_URI],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks_uri": JWKS_URL,
    }
    web.publish(URL, usual | members)
    web.publish(JWKS_URL, {"keys": [key.as_dict(private=False)]})


@pytest.fixture
def signing(host: Host, web: Web, key: RSAKey) -> Host:
    """A published client that authenticates by assertion only; its code is good."""
    publish(web, key)
    host.client_id = URL
    host.token(grant_type="refresh_token")
    return host


@pytest.mark.parametrize("client_id", [None, URL])
@pytest.mark.parametrize("audience", [ISSUER, ISSUER + "/token", [ISSUER], ["https://x.example", ISSUER]])
def test_an_assertion_proves_the_client(
    signing: Host, sign: Sign, client_id: str | None, audience: object
) -> None:
    assertion = sign(aud=audience) | {"client_id": client_id}
    tokens = signing.redeem(signing.code(), **assertion)
    assert tokens.status_code == 200, tokens.text
    assert signing.refresh(tokens.json()["refresh_token"], **sign()).status_code == 200


def test_es256_does_too(host: Host, web: Web, sign: Sign) -> None:
    key = ECKey.generate_key("P-256", {"kid": "first"}, private=True)
    publish(web, key)
    host.client_id = URL
    host.token(grant_type="refresh_token")
    assert host.redeem(host.code(), **sign(key, {"alg": "ES256"})).status_code == 200


def test_without_a_key_id_every_key_is_tried(signing: Host, sign: Sign) -> None:
    assert signing.redeem(signing.code(), **sign(header={"kid": None})).status_code == 200


@pytest.mark.threat("TK-07")
def test_a_client_that_signs_must_sign(signing: Host) -> None:
    assert error(signing.redeem(signing.code())) == INVALID_CLIENT


def test_a_client_that_offers_none_may_do_without_but_what_it_shows_must_verify(
    host: Host, web: Web, key: RSAKey, sign: Sign
) -> None:
    publish(web, key, token_endpoint_auth_methods_supported=["none", "private_key_jwt"])
    host.client_id = URL
    host.token(grant_type="refresh_token")
    assert host.redeem(host.code()).status_code == 200
    stranger = RSAKey.generate_key(2048, {"kid": "first"}, private=True)
    assert error(host.redeem(host.code(), **sign(stranger))) == INVALID_CLIENT
    assert host.redeem(host.code(), **sign()).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example/m"},
        {"iss": None},
        {"aud": "https://other.example"},
        {"aud": ISSUER + "/"},
        {"aud": []},
        {"aud": [7]},
        {"aud": None},
        {"exp": NOW},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": NOW + 3700},
        {"exp": 10**30},
        {"iat": NOW + 61},
        {"nbf": NOW + 61},
        {"iat": "now"},
        {"jti": None},
        {"jti": 7},
    ],
    ids=str,
)
def test_a_claim_that_is_wrong(signing: Host, sign: Sign, changes: dict[str, Any]) -> None:
    assert error(signing.redeem(signing.code(), **sign(**changes))) == INVALID_CLIENT


def test_an_assertion_about_another_client_proves_nothing(signing: Host, sign: Sign, web: Web) -> None:
    assert error(signing.redeem(signing.code(), **sign(sub="nobody"))) == INVALID_CLIENT
    assert error(signing.redeem(signing.code(), **sign(sub=None))) == INVALID_CLIENT


def sign_by_hmac(sign: Sign, key: RSAKey) -> dict[str, str | None]:
    """As a verifier that is fooled by HS256 would have it: the public key's bytes are the secret."""
    params = sign()
    claims = str(params["client_assertion"]).split(".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first"}').rstrip(b"=").decode()
    mac = hmac.digest(key.as_pem(private=False), f"{header}.{claims}".encode(), "sha256")
    signature = base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
    return params | {"client_assertion": f"{header}.{claims}.{signature}"}


@pytest.mark.threat("JW-01")
@pytest.mark.threat("JW-02")
@pytest.mark.parametrize(
    "forged",
    [
        sign_by_hmac,
        lambda sign, key: sign(header={"alg": "PS256"}),
        lambda sign, key: sign(header={"alg": "RS512"}),
        lambda sign, key: sign(RSAKey.generate_key(2048, private=True)),
        lambda sign, key: sign(header={"kid": "other"}),
        lambda sign, key: sign(header={"crit": ["b64"], "b64": True}),
    ],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_signature_that_does_not_hold(signing: Host, sign: Sign, key: RSAKey, forged: Any) -> None:
    assert error(signing.redeem(signing.code(), **forged(sign, key))) == INVALID_CLIENT


@pytest.mark.threat("JW-05")
@pytest.mark.parametrize(
    "assertion",
    ["x", "..", "a.b.c", "e30.e30.", "e30.bnVsbA.e30", "eyJhbGciOiJub25lIn0.e30.", "é.é.é", "[" * 9000],
)
def test_garbage_is_no_assertion(signing: Host, assertion: str) -> None:
    params: dict[str, str | None] = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    assert error(signing.redeem(signing.code(), **params)) == INVALID_CLIENT


def test_an_assertion_of_any_length_is_not_read(signing: Host, sign: Sign) -> None:
    assert error(signing.redeem(signing.code(), **sign(padding="x" * 9000))) == INVALID_CLIENT


@pytest.mark.parametrize(
    "changes",
    [
        {"client_assertion_type": None},
        {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"},
        {"client_assertion": None},
    ],
)
def test_assertion_and_type_belong_together(
    signing: Host, sign: Sign, changes: dict[str, str | None]
) -> None:
    params = sign() | {"client_id": URL} | changes
    assert error(signing.redeem(signing.code(), **params)) == INVALID_CLIENT


@pytest.mark.threat("TK-08")
def test_an_assertion_and_another_method_or_identity_are_too_many(signing: Host, sign: Sign) -> None:
    both = sign() | {"client_secret": "s", "client_id": URL}
    assert error(signing.redeem(signing.code(), **both)) == (400, "invalid_request")
    two = sign() | {"client_id": "nobody"}
    assert error(signing.redeem(signing.code(), **two)) == (400, "invalid_request")


def test_an_assertion_is_good_once(signing: Host, sign: Sign, clock: Clock) -> None:
    assertion = sign()
    tokens = signing.redeem(signing.code(), **assertion).json()
    assert error(signing.refresh(tokens["refresh_token"], **assertion)) == INVALID_CLIENT
    clock.advance(seconds=61)
    assert error(signing.refresh(tokens["refresh_token"], **assertion)) == INVALID_CLIENT


def test_a_client_that_did_not_register_for_it_cannot_sign(host: Host, sign: Sign, key: RSAKey) -> None:
    params = sign(iss=host.client_id, sub=host.client_id)
    assert error(host.redeem(host.code(), **params)) == INVALID_CLIENT
    host.register(token_endpoint_auth_method="none", jwks={"keys": [key.as_dict(private=False)]})
    params = sign(iss=host.client_id, sub=host.client_id)
    assert error(host.redeem(host.code(), **params)) == INVALID_CLIENT


def test_a_registered_client_may_bring_its_keys_along(host: Host, sign: Sign, key: RSAKey, web: Web) -> None:
    host.register(token_endpoint_auth_method="private_key_jwt", jwks={"keys": [key.as_dict(private=False)]})
    params = sign(iss=host.client_id, sub=host.client_id)
    assert host.redeem(host.code(), **params).status_code == 200
    assert web.resolved == []


@pytest.mark.threat("DC-09")
def test_keys_at_a_private_address_are_not_fetched(host: Host, sign: Sign, web: Web) -> None:
    host.register(token_endpoint_auth_method="private_key_jwt", jwks_uri="https://127.0.0.1/jwks")
    params = sign(iss=host.client_id, sub=host.client_id)
    assert error(host.redeem(host.code(), **params)) == (503, "temporarily_unavailable")
    assert (web.resolved, web.connected) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.ConnectError("no"),
        httpx2.Response(404),
        httpx2.Response(200, json={"keys": []}),
        httpx2.Response(403),
    ],
)
def test_keys_that_cannot_be_had_are_503_never_invalid_client(
    signing: Host, sign: Sign, web: Web, answer: httpx2.Response | Exception
) -> None:
    code = signing.code()
    web.answers[JWKS_URL] = answer
    assert error(signing.redeem(code, **sign())) == (503, "temporarily_unavailable")


def test_a_new_key_is_found_and_an_unknown_one_is_asked_for_once_a_minute(
    signing: Host, sign: Sign, web: Web, key: RSAKey, clock: Clock
) -> None:
    assert signing.redeem(signing.code(), **sign()).status_code == 200
    second = RSAKey.generate_key(2048, {"kid": "second"}, private=True)
    web.publish(JWKS_URL, {"keys": [key.as_dict(private=False), second.as_dict(private=False)]})
    assert error(signing.redeem(signing.code(), **sign(second, {"kid": "second"}))) == INVALID_CLIENT
    clock.advance(seconds=60)
    later = {"exp": NOW + 120}
    assert signing.redeem(signing.code(), **sign(second, {"kid": "second"}, **later)).status_code == 200
    fetched = len(web.connected)
    for number in range(5):
        params = sign(second, {"kid": f"unknown {number}"}, **later)
        assert error(signing.redeem(signing.code(), **params)) == INVALID_CLIENT
    assert len(web.connected) == fetched


def test_an_unknown_key_while_the_host_is_away_is_503(
    signing: Host, sign: Sign, web: Web, clock: Clock
) -> None:
    assert signing.redeem(signing.code(), **sign()).status_code == 200
    web.answers[JWKS_URL] = httpx2.ConnectError("no")
    clock.advance(seconds=60)
    later = {"exp": NOW + 120}
    for _ in range(2):
        params = sign(header={"kid": "second"}, **later)
        assert error(signing.redeem(signing.code(), **params)) == (503, "temporarily_unavailable")
    assert signing.redeem(signing.code(), **sign(**later)).status_code == 200


def test_the_key_endpoint_of_a_client_without_one_is_not_asked(
    server: AuthorizationServer, host: Host, sign: Sign
) -> None:
    host.register(token_endpoint_auth_method="none")
    params = sign(iss=host.client_id, sub=host.client_id)
    assert error(host.redeem(host.code(), **params)) == INVALID_CLIENT
