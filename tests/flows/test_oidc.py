"""OpenID Connect says who the owner is: what must hold of the issuer's answers, and its bad days."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.settings import Settings
from oauth.errors import InvalidGrant
from tests.connector.pages.stand import Form, Person
from tests.flows.conftest import PUBLIC_URL, Clock, Host
from tests.flows.issuer import CLIENT_ID, ISSUER, Issuer

DISCOVERY, KEYS, TOKEN = "/.well-known/openid-configuration", "/jwks", "/token"
OUTAGES = [
    httpx2.ConnectError("no route"),
    httpx2.ReadTimeout("slow"),
    httpx2.Response(502, json={}),
    httpx2.Response(200, content=b"<html>captive portal</html>"),
]


@pytest.fixture
def issuer(clock: Clock) -> Issuer:
    return Issuer(clock)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "state_dir": tmp_path,
            "embedder": "none",
            "public_url": PUBLIC_URL,
            "identity": "oidc",
            "oidc_issuer": ISSUER,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": "s3cret: with space",
            "allowed_emails": ("ana@example.org",),
        }
    )


@pytest.fixture
def parts(settings: Settings, clock: Clock, issuer: Issuer) -> Iterator[Vademecum]:
    parts = Vademecum(settings, clock, clock.monotonic, provider_transport=issuer.transport())
    yield parts
    parts.database.close()


@dataclass
class Visitor:
    """Somebody with a browser and an app of their own."""

    person: Person
    issuer: Issuer
    host: Host

    def begin(self, page: httpx2.Response | None = None) -> httpx2.Response:
        """Presses the sign-in page's button."""
        page = page or self.person.open("/sign-in")
        return self.person.post("/login/oidc", Form(page.text).fields)

    def come_back(self, answer: dict[str, str]) -> httpx2.Response:
        return self.person.get(f"/login/oidc/callback?{urlencode(answer)}")

    def sign_in(self, page: httpx2.Response | None = None) -> httpx2.Response:
        return self.come_back(self.issuer.consent(self.begin(page).headers["location"]))

    def connect(self) -> dict[str, Any]:
        self.host.register()
        consent = self.person.follow(self.sign_in(self.person.open(self.host.authorization_url())))
        target = self.person.submit(consent, decision="allow").headers["location"]
        return self.host.redeem(parse_qs(urlsplit(target).query)["code"][0])

    def refresh(self, tokens: dict[str, Any]) -> httpx2.Response:
        answer: httpx2.Response = self.host.token(
            grant_type="refresh_token", refresh_token=tokens["refresh_token"]
        )
        return answer


def visit(parts: Vademecum, issuer: Issuer) -> Visitor:
    http = TestClient(create_app(parts), base_url=PUBLIC_URL, follow_redirects=False)
    return Visitor(Person(http, PUBLIC_URL), issuer, Host(http))


@pytest.fixture
def ana(parts: Vademecum, issuer: Issuer) -> Visitor:
    return visit(parts, issuer)


def test_signing_in_asks_for_what_the_standards_want(ana: Visitor, issuer: Issuer) -> None:
    asked = parse_qs(urlsplit(ana.begin().headers["location"]).query)
    assert asked["response_type"] == ["code"] and asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) == len(asked["nonce"][0]) == len(asked["code_challenge"][0]) == 43
    assert asked["redirect_uri"] == [f"{PUBLIC_URL}/login/oidc/callback"]
    assert asked["scope"] == ["openid email offline_access"] and asked["prompt"] == ["login"]
    assert ana.sign_in().headers["location"] == "/"
    assert ana.person.is_signed_in
    # RFC 6749 §2.3.1: both halves are form-encoded before they are joined.
    credentials = base64.b64decode(issuer.forms[0]["authorization"].removeprefix("Basic ")).decode()
    assert credentials == "vademecum:s3cret%3A%20with%20space"


@pytest.mark.parametrize(
    ("metadata", "prompt", "scope"),
    [
        ({"scopes_supported": ["openid"]}, "login", "openid email"),
        ({"scopes_supported": None}, "login", "openid email"),
    ],
)
def test_offline_access_is_asked_for_where_it_is_known(
    ana: Visitor, issuer: Issuer, metadata: dict[str, Any], prompt: str, scope: str
) -> None:
    issuer.metadata = metadata
    asked = parse_qs(urlsplit(ana.begin().headers["location"]).query)
    assert (asked["prompt"], asked["scope"]) == ([prompt], [scope])


def test_google_is_asked_in_its_own_way(
    settings: Settings, clock: Clock, issuer: Issuer, tmp_path: Path
) -> None:
    google = "https://accounts.google.com"
    issuer.metadata = {
        "issuer": google,
        "authorization_endpoint": f"{google}/o/oauth2/v2/auth",
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
    }
    values = settings.model_dump() | {"oidc_issuer": google}
    parts = Vademecum(Settings.model_validate(values), clock, provider_transport=issuer.transport())
    asked = parse_qs(urlsplit(visit(parts, issuer).begin().headers["location"]).query)
    assert asked["access_type"] == ["offline"] and asked["prompt"] == ["consent select_account"]
    parts.database.close()


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "other"},
    "two audiences and no authorized party": {"aud": [CLIENT_ID, "other"]},
    "another authorized party": {"azp": "other"},
    "expired": {"exp": 1},
    "no expiry": {"exp": None},
    "from the future": {"iat": 9_999_999_999},
    "another nonce": {"nonce": "x" * 43},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a number as subject": {"sub": 7},
    "a long subject": {"sub": "x" * 256},
    "an old sign-in": {"auth_time": 1},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    "an unverified address": {"email_verified": False},
    "another address": {"email": "eve@example.org"},
}


@pytest.mark.threat("FB-02")
@pytest.mark.parametrize("wrong", WRONG_CLAIMS)
def test_id_tokens_that_are_not_for_this_login_sign_nobody_in(
    ana: Visitor, issuer: Issuer, wrong: str
) -> None:
    issuer.claims = WRONG_CLAIMS[wrong]
    assert ana.sign_in().status_code == 403
    assert not ana.person.is_signed_in


@pytest.mark.threat("FB-01")
@pytest.mark.parametrize("forgery", ["none", "own key", "secret", "unknown key", "broken"])
def test_id_tokens_that_the_issuer_did_not_sign_sign_nobody_in(
    ana: Visitor, issuer: Issuer, forgery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = issuer.id_token

    def forged(nonce: str | None, **header: Any) -> str:
        token = good(nonce)
        payload = jwt.decode(token, issuer.key, algorithms=["ES256"]).claims
        match forgery:
            case "none":
                unsigned = base64.urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').decode()
                return f"{unsigned}.{token.split('.')[1]}."
            case "own key":
                return jwt.encode({"alg": "ES256", "kid": "k1"}, payload, ECKey.generate_key("P-256"))
            case "secret":
                key = OctKey.import_key("s3cret: with space" * 2)
                return jwt.encode({"alg": "HS256", "kid": "k1"}, payload, key)
            case "unknown key":
                return good(nonce, kid="k2")
        return token[:-4]

    monkeypatch.setattr(issuer, "id_token", forged)
    assert ana.sign_in().status_code == 403
    assert not ana.person.is_signed_in


def test_two_audiences_are_fine_when_this_client_is_the_authorized_party(
    ana: Visitor, issuer: Issuer
) -> None:
    issuer.claims = {"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID}
    assert ana.sign_in().status_code == 303


@pytest.mark.threat("CS-12")
def test_another_browsers_login_signs_nobody_in(ana: Visitor, parts: Vademecum, issuer: Issuer) -> None:
    answer = issuer.consent(ana.begin().headers["location"])
    victim = visit(parts, issuer)
    assert victim.come_back(answer).status_code == 400, "a browser that was never here"
    victim.begin()
    assert victim.come_back(answer).status_code == 400, "a browser with a login of its own"
    assert not victim.person.is_signed_in
    assert ana.come_back(answer).status_code == 303


def test_an_answer_counts_once_names_its_issuer_and_expires(
    ana: Visitor, issuer: Issuer, clock: Clock
) -> None:
    answer = issuer.consent(ana.begin().headers["location"])
    assert ana.come_back(answer | {"iss": "https://evil.example"}).status_code == 403
    assert ana.come_back({"state": answer["state"], "code": answer["code"]}).status_code == 403
    assert ana.come_back(answer | {"state": "x" * 43}).status_code == 400
    assert (
        ana.come_back({"state": answer["state"], "error": "access_denied", "iss": ISSUER}).status_code == 403
    )
    assert ana.come_back(answer).status_code == 303
    assert ana.come_back(answer).status_code == 400
    late = issuer.consent(ana.begin().headers["location"])
    clock.advance(minutes=10)
    assert ana.come_back(late).status_code == 400


@pytest.mark.threat("CS-12")
def test_the_way_to_the_issuer_begins_on_our_own_page(ana: Visitor) -> None:
    fields = Form(ana.person.open("/sign-in").text).fields
    assert ana.person.post("/login/oidc", fields, Origin="https://evil.example").status_code == 403
    assert ana.person.post("/login/oidc", [("request", "")]).status_code == 403
    assert ana.person.get("/login/oidc").status_code == 405


@pytest.mark.threat("FB-03")
@pytest.mark.parametrize("outage", OUTAGES, ids=str)
@pytest.mark.parametrize("path", [TOKEN, KEYS])
def test_while_the_issuer_is_away_nobody_signs_in_and_nothing_is_lost(
    ana: Visitor, issuer: Issuer, clock: Clock, outage: Any, path: str
) -> None:
    ana.host.register()
    answer = issuer.consent(ana.begin(ana.person.open(ana.host.authorization_url())).headers["location"])
    kept = dict(issuer.codes)
    issuer.answers[path] = outage
    assert ana.come_back(answer).status_code == 503
    del issuer.answers[path]
    issuer.codes = kept
    clock.advance(seconds=10)
    assert "Test host" in ana.person.follow(ana.come_back(answer)).text


@pytest.mark.threat("FB-03")
@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": ISSUER + "/"},
        {"token_endpoint": "http://idp.example/token"},
        {"jwks_uri": None},
    ],
)
def test_metadata_of_another_or_a_careless_issuer_are_not_used(
    ana: Visitor, issuer: Issuer, metadata: dict[str, Any]
) -> None:
    issuer.metadata = metadata
    assert ana.begin().status_code == 503


def test_one_usable_key_among_strange_ones_is_enough(ana: Visitor, issuer: Issuer) -> None:
    strange = [{"kty": "AKP", "kid": "a"}, {"kty": "oct", "k": "AAAA"}, {"kty": "RSA"}, {"use": "enc"}]
    keys = [*strange, issuer.key.as_dict(private=False)]
    issuer.answers[KEYS] = httpx2.Response(200, json={"keys": keys})
    assert ana.sign_in().status_code == 303


@pytest.mark.threat("FB-03")
@pytest.mark.parametrize("keys", [{"keys": []}, {"keys": [7]}, {"keys": None}, {}])
def test_without_usable_keys_nobody_signs_in(ana: Visitor, issuer: Issuer, keys: dict[str, Any]) -> None:
    issuer.answers[KEYS] = httpx2.Response(200, json=keys)
    assert ana.sign_in().status_code == 503


def test_discovery_is_kept_as_long_as_the_issuer_allows(ana: Visitor, issuer: Issuer, clock: Clock) -> None:
    for _ in range(3):
        assert ana.sign_in().status_code == 303
    assert issuer.requests.count(DISCOVERY) == issuer.requests.count(KEYS) == 1
    clock.advance(minutes=10)
    ana.begin()
    assert issuer.requests.count(DISCOVERY) == 2


def test_a_refresh_renews_with_the_token_that_came_last(ana: Visitor, issuer: Issuer, clock: Clock) -> None:
    tokens = ana.connect()
    for number in (2, 3):
        clock.advance(minutes=10)
        tokens = ana.refresh(tokens).json()
        assert issuer.generation == number
    assert ana.refresh(tokens).status_code == 200 and issuer.generation == 3


@pytest.mark.parametrize(
    "outage", [*OUTAGES, httpx2.Response(401, json={"error": "invalid_client"})], ids=str
)
def test_down_is_not_gone(ana: Visitor, issuer: Issuer, clock: Clock, outage: Any) -> None:
    tokens = ana.connect()
    clock.advance(minutes=10)
    issuer.answers[TOKEN] = outage
    assert ana.refresh(tokens).status_code == 503
    assert ana.person.is_signed_in
    del issuer.answers[TOKEN]
    clock.advance(seconds=10)
    assert ana.refresh(tokens).status_code == 200


@pytest.mark.threat("FB-05")
@pytest.mark.parametrize("claims", [{"sub": "somebody-else"}, {"email": "ana@new-job.example"}, None])
def test_gone_is_gone(
    ana: Visitor, parts: Vademecum, issuer: Issuer, clock: Clock, claims: dict[str, Any] | None
) -> None:
    tokens = ana.connect()
    clock.advance(minutes=10)
    if claims is None:
        issuer.generation += 1
    else:
        issuer.claims = claims
    assert ana.refresh(tokens).json()["error"] == "invalid_grant"
    assert not ana.person.is_signed_in
    (owner,) = parts.owners.list()
    asked = len(issuer.requests)
    with pytest.raises(InvalidGrant):
        parts.renewal.renew(owner.id)
    assert len(issuer.requests) == asked, "an app that was about to connect hears the same"


def test_without_a_refresh_token_the_list_alone_decides(
    ana: Visitor, parts: Vademecum, issuer: Issuer, clock: Clock
) -> None:
    issuer.gives_refresh_token = False
    tokens = ana.connect()
    clock.advance(minutes=10)
    asked = len(issuer.requests)
    tokens = ana.refresh(tokens).json()
    assert "access_token" in tokens and len(issuer.requests) == asked
    values = parts.settings.model_dump() | {"allowed_emails": ("bob@example.org",)}
    stricter = Vademecum(
        Settings.model_validate(values), clock, clock.monotonic, provider_transport=issuer.transport()
    )
    visit(stricter, issuer)
    assert ana.refresh(tokens).json()["error"] == "invalid_grant"
    stricter.database.close()


@pytest.mark.threat("ST-01")
def test_the_store_holds_no_secret_of_a_login(ana: Visitor, parts: Vademecum) -> None:
    asked = parse_qs(urlsplit(ana.begin().headers["location"]).query)
    ana.sign_in()
    content = b"".join(path.read_bytes() for path in parts.settings.state_dir.glob("vademecum.db*"))
    for secret in (asked["state"][0], asked["nonce"][0], "rt-1", "ana@example.org", "s3cret"):
        assert secret.encode() not in content
