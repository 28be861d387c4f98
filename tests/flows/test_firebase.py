"""Firebase says who the owner is: signing in, being asked again while away, and Google's bad days."""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from connector.app import Vademecum
from connector.identity.provider import Identity
from connector.identity.setup_links import issue_setup_link
from connector.settings import Settings
from oauth import personal_tokens
from store.memory import Draft
from tests.flows.accounts import Visitor, firebase_settings, restarted, visit
from tests.flows.conftest import PUBLIC_URL, Clock
from tests.flows.google import CERTIFICATES, PROJECT, Google

EXCHANGE = "/v1/token"
ISSUER = f"https://securetoken.google.com/{PROJECT}"
OUTAGES = [
    httpx2.ConnectError("no route"),
    httpx2.ReadTimeout("slow"),
    httpx2.Response(503, json={}),
    httpx2.Response(429, json={}),
    httpx2.Response(200, content=b"<html>captive portal</html>"),
]


@pytest.fixture
def google(clock: Clock) -> Google:
    google = Google(clock)
    google.add("ana", "ana@example.org")
    google.add("eve", "eve@elsewhere.example")
    return google


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return firebase_settings(tmp_path)


@pytest.fixture
def parts(settings: Settings, clock: Clock, google: Google) -> Iterator[Vademecum]:
    parts = Vademecum(settings, clock, clock.monotonic, provider_transport=google.transport())
    yield parts
    parts.database.close()


@pytest.fixture
def ana(parts: Vademecum, google: Google) -> Iterator[Visitor]:
    """The owner to be, at a server that serves /mcp too."""
    visitor = visit(parts, google)
    with visitor.person.http:
        yield visitor


def test_an_account_on_the_list_signs_in_and_connects_an_app(ana: Visitor, parts: Vademecum) -> None:
    tokens = ana.connect("ana")
    assert ana.host.mcp(tokens["access_token"], "tools/list").status_code == 200
    (owner,) = parts.owners.list()
    assert owner.label == "an…@example.org"


def test_a_double_click_and_the_back_button_sign_nobody_in_twice(ana: Visitor, google: Google) -> None:
    page = ana.person.open("/sign-in")
    form = google.sign_in("ana")
    assert ana.person.submit(page, **form).status_code == 303
    assert ana.person.submit(ana.person.open("/sign-in"), **form).status_code == 403
    assert ana.person.is_signed_in


@pytest.mark.threat("FB-05")
def test_an_id_token_is_good_once_and_while_its_sign_in_is_fresh(
    parts: Vademecum, google: Google, clock: Clock
) -> None:
    form = google.sign_in("ana")
    answers = []
    for _ in range(2):
        person = visit(parts, google).person
        answers.append(person.submit(person.open("/sign-in"), **form).status_code)
    assert answers == [303, 403]
    stale = google.sign_in("ana")
    clock.advance(minutes=5, seconds=1)
    person = visit(parts, google).person
    assert person.submit(person.open("/sign-in"), **stale).status_code == 403
    assert not person.is_signed_in


def test_racing_browsers_with_one_id_token_make_one_session(parts: Vademecum, google: Google) -> None:
    form = google.sign_in("ana")
    people = [visit(parts, google).person for _ in range(6)]
    pages = [person.open("/sign-in") for person in people]
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda each: each[0].submit(each[1], **form), zip(people, pages, strict=True))
        )
    assert sorted(answer.status_code for answer in answers) == [303] + [403] * 5


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forged_tokens(google: Google) -> dict[str, str]:
    """What an attacker can make without Google's key."""
    claims, good = google.claims("ana"), google.sign(google.claims("ana"))
    header, payload, signature = good.split(".")
    public = google.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    own = rsa.generate_private_key(65537, 2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key()))
    unsigned = {
        f"alg {alg}": f"{segment({'alg': alg, 'kid': 'key-1', 'typ': 'JWT'})}.{payload}."
        for alg in ("none", "None", "NONE", "")
    }
    hmac_header = segment({"alg": "HS256", "kid": "key-1"})
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    hmac_signature = base64.urlsafe_b64encode(mac.sign(f"{hmac_header}.{payload}".encode(), public))
    return unsigned | {
        "empty": "",
        "dots": "..",
        "no signature": f"{header}.{payload}",
        "noise": f"{header}.{payload}.{signature[::-1]}",
        "another payload": f"{header}.{segment(claims | {'sub': 'eve'})}.{signature}",
        "own key": jwt.encode(claims, own, "RS256", headers={"kid": "key-1"}),
        "own key embedded": jwt.encode(claims, own, "RS256", headers={"kid": "key-1", "jwk": jwk}),
        "unknown key": google.sign(claims, kid="key-2"),
        "key id of another type": f"{segment({'alg': 'RS256', 'kid': ['key-1']})}.{payload}.{signature}",
        "no key id": f"{segment({'alg': 'RS256'})}.{payload}.{signature}",
        "public key as secret": f"{hmac_header}.{payload}.{hmac_signature.decode().rstrip('=')}",
        "deep": f"{segment({'alg': 'RS256', 'kid': 'key-1'})}.{'W' * 12000}.{signature}",
        "huge": good + "A" * 20000,
    }


@pytest.mark.threat("FB-01")
def test_tokens_that_google_did_not_sign_sign_nobody_in(ana: Visitor, google: Google) -> None:
    for name, id_token in forged_tokens(google).items():
        page = ana.person.open("/sign-in")
        answer = ana.person.submit(page, id_token=id_token, refresh_token="refresh-ana-0")
        assert answer.status_code == 403, name
        assert not ana.person.is_signed_in, name
    assert EXCHANGE not in google.requests


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another project's issuer": {"iss": "https://securetoken.google.com/other"},
    "an issuer with a suffix": {"iss": f"https://securetoken.google.com/{PROJECT}/"},
    "google's own issuer": {"iss": "https://accounts.google.com"},
    "another audience": {"aud": "other"},
    "a list of audiences": {"aud": [PROJECT]},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a number as subject": {"sub": 7},
    "a long subject": {"sub": "x" * 129},
    "no expiry": {"exp": None},
    "no issue time": {"iat": None},
    "no authentication time": {"auth_time": None},
    "a word as time": {"auth_time": "now"},
    "a truth as time": {"auth_time": True},
    "an endless time": {"exp": 1e400},
    "an anonymous sign-in": {"firebase": {"sign_in_provider": "anonymous"}},
    "a custom sign-in": {"firebase": {"sign_in_provider": "custom"}},
    "a tenant's user": {"firebase": {"sign_in_provider": "google.com", "tenant": "t-1"}},
    "no sign-in method": {"firebase": None},
    "an unverified address": {"email_verified": False},
    "a truth in letters": {"email_verified": "true"},
}


@pytest.mark.threat("FB-02")
@pytest.mark.parametrize("wrong", WRONG_CLAIMS)
def test_tokens_that_google_signed_for_something_else_sign_nobody_in(
    ana: Visitor, google: Google, wrong: str
) -> None:
    google.users["ana"].is_verified = "verified" not in WRONG_CLAIMS[wrong] and wrong not in (
        "an unverified address",
        "a truth in letters",
    )
    assert ana.sign_in("ana", **WRONG_CLAIMS[wrong]).status_code == 403
    assert not ana.person.is_signed_in


@pytest.mark.threat("FB-02", "CL-01")
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"exp": 0}, 403),
        ({"exp": 1}, 303),
        ({"iat": 60, "auth_time": 60}, 303),
        ({"iat": 61}, 403),
        ({"auth_time": 61}, 403),
        ({"auth_time": -300}, 303),
        ({"auth_time": -301}, 403),
    ],
)
def test_expiry_is_exact_and_only_a_minute_of_skew_is_forgiven(
    ana: Visitor, clock: Clock, changes: dict[str, Any], status: int
) -> None:
    now = int(clock().timestamp())
    moved: dict[str, Any] = {name: now + seconds for name, seconds in changes.items()}
    answer = ana.sign_in("ana", **moved)
    assert answer.status_code == status


@pytest.mark.threat("FB-02")
def test_critical_extensions_are_not_understood(ana: Visitor, google: Google) -> None:
    token = google.sign(google.claims("ana"), crit=["x"], x=1)
    page = ana.person.open("/sign-in")
    assert ana.person.submit(page, id_token=token, refresh_token="refresh-ana-0").status_code == 403


@pytest.mark.threat("FB-02")
@pytest.mark.parametrize(
    "email", ["eve@example.org", "ana@example.org.evil.example", "\u0430na@example.org", "ana@example.org "]
)
def test_only_the_very_address_on_the_list_enters(ana: Visitor, google: Google, email: str) -> None:
    google.add("mallory", email)
    answer = ana.sign_in("mallory")
    assert answer.status_code == 403 and "belongs to somebody else" in answer.text
    assert not ana.person.is_signed_in


def test_the_refusal_names_the_account_and_offers_another_without_losing_the_request(
    ana: Visitor, google: Google
) -> None:
    ana.host.register()
    page = ana.person.open(ana.host.authorization_url())
    refused = ana.sign_in("eve", page)
    assert refused.status_code == 403 and "eve@elsewhere.example" in refused.text
    link = refused.text.split('class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
    consent = ana.person.follow(ana.sign_in("ana", ana.person.open(link)))
    assert "Test host" in consent.text


def test_a_refresh_token_of_somebody_else_is_refused(ana: Visitor, google: Google) -> None:
    for uid, other in (("ana", "eve"), ("eve", "ana")):
        form = google.sign_in(uid) | {"refresh_token": f"refresh-{other}-0"}
        assert ana.person.submit(ana.person.open("/sign-in"), **form).status_code == 403
    for token in ("", "nonsense", "x" * 20000):
        form = google.sign_in("ana") | {"refresh_token": token}
        assert ana.person.submit(ana.person.open("/sign-in"), **form).status_code == 403
    assert not ana.person.is_signed_in


@pytest.mark.threat("CS-12")
def test_tokens_posted_from_elsewhere_sign_nobody_in(ana: Visitor, parts: Vademecum, google: Google) -> None:
    attacker = visit(parts, google).person
    page = attacker.open("/sign-in")
    victim = ana.person
    victim.open("/sign-in")
    fields = [("csrf", page.text.split('name="csrf" value="')[1].split('"')[0]), ("request", "")]
    fields += list(google.sign_in("ana").items())
    assert victim.post("/sign-in", fields).status_code == 403
    assert victim.post("/sign-in", fields, Origin="https://evil.example").status_code == 403
    assert not victim.is_signed_in


@pytest.mark.threat("FB-03")
@pytest.mark.parametrize("outage", OUTAGES, ids=str)
@pytest.mark.parametrize("path", [CERTIFICATES, EXCHANGE])
def test_while_google_is_away_nobody_signs_in_and_nothing_is_lost(
    ana: Visitor, google: Google, clock: Clock, outage: Any, path: str
) -> None:
    google.outage, google.down = outage, path
    ana.host.register()
    page = ana.person.open(ana.host.authorization_url())
    form = google.sign_in("ana")
    answer = ana.person.submit(page, **form)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert not ana.person.is_signed_in
    google.outage = None
    clock.advance(seconds=10)
    assert "Test host" in ana.person.follow(ana.person.submit(page, **form)).text


@pytest.mark.threat("FB-03")
def test_old_certificates_are_not_used_and_existing_grants_work_without_google(
    ana: Visitor, parts: Vademecum, google: Google, clock: Clock
) -> None:
    tokens = ana.connect("ana")
    google.outage = httpx2.ConnectError("no route")
    clock.advance(minutes=59)
    assert ana.host.mcp(tokens["access_token"], "tools/list").status_code == 200
    google.down = CERTIFICATES
    assert visit(parts, google).sign_in("ana").status_code == 303, "the copy is fresh"
    clock.advance(minutes=2)
    assert visit(parts, google).sign_in("ana").status_code == 503


def test_certificates_are_fetched_once_while_fresh_and_for_unknown_keys_once_a_minute(
    ana: Visitor, google: Google, clock: Clock
) -> None:
    for _ in range(5):
        page = ana.person.open("/sign-in")
        unknown = google.sign(google.claims("ana"), kid="key-2")
        ana.person.submit(page, id_token=unknown, refresh_token="refresh-ana-0")
    assert google.requests.count(CERTIFICATES) == 1
    clock.advance(minutes=1)
    ana.person.submit(ana.person.open("/sign-in"), id_token=unknown, refresh_token="refresh-ana-0")
    assert google.requests.count(CERTIFICATES) == 2


def test_many_who_wait_for_the_certificates_cost_one_fetch(parts: Vademecum, google: Google) -> None:
    people = [visit(parts, google) for _ in range(6)]
    pages = [each.person.open("/sign-in") for each in people]
    google.delay = 0.2
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda each: each[0].sign_in("ana", each[1]), zip(people, pages, strict=True))
        )
    assert {answer.status_code for answer in answers} == {303}
    assert google.requests.count(CERTIFICATES) == 1


def test_googles_max_age_counts_less_what_its_caches_kept(
    parts: Vademecum, google: Google, clock: Clock
) -> None:
    google.max_age, google.age = 180, 60
    assert visit(parts, google).sign_in("ana").status_code == 303
    clock.advance(minutes=2)
    assert visit(parts, google).sign_in("ana").status_code == 303
    assert google.requests.count(CERTIFICATES) == 2


def test_the_account_is_asked_about_at_most_every_ten_minutes(
    ana: Visitor, google: Google, clock: Clock
) -> None:
    tokens = ana.connect("ana")
    asked = google.requests.count(EXCHANGE)
    tokens = ana.refresh(tokens).json()
    clock.advance(minutes=9)
    tokens = ana.refresh(tokens).json()
    assert google.requests.count(EXCHANGE) == asked
    clock.advance(minutes=1)
    tokens = ana.refresh(tokens).json()
    assert google.requests.count(EXCHANGE) == asked + 1
    clock.advance(minutes=10)
    assert ana.refresh(tokens).status_code == 200, "with the token that the last renewal brought"


@pytest.mark.threat("FB-05")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_disabled_or_deleted_account_ends_sessions_and_grants(
    ana: Visitor, parts: Vademecum, google: Google, clock: Clock, is_deleted: bool
) -> None:
    first, second_app = ana.connect("ana"), visit(parts, google)
    second = second_app.connect("ana")
    clock.advance(minutes=10)
    google.users["ana"].is_disabled = True
    if is_deleted:
        del google.users["ana"]
    answer = ana.refresh(first)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert not ana.person.is_signed_in
    assert second_app.refresh(second).json()["error"] == "invalid_grant"
    assert ana.host.mcp(first["access_token"], "tools/list").status_code == 401


def test_an_account_that_was_enabled_again_signs_in_anew(ana: Visitor, google: Google, clock: Clock) -> None:
    tokens = ana.connect("ana")
    clock.advance(minutes=10)
    google.users["ana"].is_disabled = True
    assert ana.refresh(tokens).status_code == 400
    google.users["ana"].is_disabled = False
    assert ana.refresh(ana.connect("ana")).status_code == 200


@pytest.mark.parametrize(
    "outage",
    [
        *OUTAGES,
        httpx2.Response(400, json={"error": {"message": "API key not valid. Please pass a valid API key."}}),
    ],
    ids=str,
)
def test_a_refresh_while_google_is_away_is_503_and_works_afterwards(
    ana: Visitor, parts: Vademecum, google: Google, clock: Clock, outage: Any
) -> None:
    tokens = ana.connect("ana")
    clock.advance(minutes=10)
    google.outage, google.down = outage, EXCHANGE
    for _ in range(2):
        answer = ana.refresh(tokens)
        assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    assert ana.person.is_signed_in
    google.outage = None
    clock.advance(seconds=10)
    assert ana.refresh(tokens).status_code == 200


def test_an_outage_is_not_asked_about_by_everybody(ana: Visitor, google: Google, clock: Clock) -> None:
    tokens = ana.connect("ana")
    clock.advance(minutes=10)
    google.outage, google.down = httpx2.ReadTimeout("slow"), EXCHANGE
    asked = google.requests.count(EXCHANGE)
    assert [ana.refresh(tokens).status_code for _ in range(5)] == [503] * 5
    assert google.requests.count(EXCHANGE) == asked + 1


def test_apps_that_refresh_at_once_cost_one_question(
    ana: Visitor, parts: Vademecum, google: Google, clock: Clock
) -> None:
    visitors = [ana, visit(parts, google), visit(parts, google)]
    tokens = [visitor.connect("ana") for visitor in visitors]
    clock.advance(minutes=10)
    asked = google.requests.count(EXCHANGE)
    google.delay = 0.2
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda each: each[0].refresh(each[1]), zip(visitors, tokens, strict=True)))
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert google.requests.count(EXCHANGE) == asked + 1


@pytest.mark.threat("FB-05")
def test_who_is_taken_off_the_list_loses_everything_at_the_next_start(
    ana: Visitor, parts: Vademecum, google: Google
) -> None:
    tokens = ana.connect("ana")
    server = parts.authorization_server
    (owner,) = parts.owners.list()
    profile = personal_tokens.Profile(frozenset({"memory:read"}))
    personal_tokens.create(server, owner.id, "agent", profile)
    again = restarted(parts, google, allowed_emails=("somebody@example.org",))
    elsewhere = visit(again, google)
    assert ana.refresh(tokens).status_code == 400
    assert not ana.person.is_signed_in
    assert personal_tokens.of_subject(server, owner.id) == []
    assert elsewhere.sign_in("ana").status_code == 403
    again.database.close()


@pytest.mark.threat("FB-05")
def test_an_address_that_changes_to_one_off_the_list_ends_the_login(
    ana: Visitor, google: Google, clock: Clock
) -> None:
    tokens = ana.connect("ana")
    google.users["ana"].email = "ana@new-job.example"
    clock.advance(minutes=10)
    assert ana.refresh(tokens).json()["error"] == "invalid_grant"
    assert not ana.person.is_signed_in


@pytest.mark.threat("ST-01")
def test_the_store_holds_neither_tokens_nor_the_address(
    ana: Visitor, parts: Vademecum, google: Google
) -> None:
    form = google.sign_in("ana")
    ana.person.submit(ana.person.open("/sign-in"), **form)
    content = b"".join(path.read_bytes() for path in parts.settings.state_dir.glob("vademecum.db*"))
    for secret in (form["id_token"], "refresh-ana-0", "refresh-ana-1", "ana@example.org"):
        assert secret.encode() not in content


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"allowed_uids": ("ana",)}, 303),
        ({"allowed_uids": ("Ana",)}, 403),
        ({"allowed_domains": ("EXAMPLE.org",)}, 303),
        ({"allowed_domains": ("ample.org",)}, 403),
        ({"open_sign_up": True}, 303),
        ({}, 403),
    ],
)
def test_who_may_enter_is_said_by_id_domain_or_nobody(
    parts: Vademecum, google: Google, rule: dict[str, Any], status: int
) -> None:
    again = restarted(parts, google, **{"allowed_emails": ()} | rule)
    assert visit(again, google).sign_in("ana").status_code == status
    again.database.close()


@pytest.mark.threat("FB-02")
def test_an_unconfirmed_address_counts_for_no_list_and_the_page_says_so(
    parts: Vademecum, google: Google
) -> None:
    google.users["ana"].is_verified = False
    again = restarted(parts, google, allowed_domains=("example.org",))
    answer = visit(again, google).sign_in("ana")
    assert answer.status_code == 403 and "has not been confirmed" in answer.text
    again.database.close()


@pytest.mark.threat("TN-01")
def test_each_account_has_memories_of_its_own(parts: Vademecum, google: Google) -> None:
    again = restarted(parts, google, allowed_emails=("ana@example.org", "eve@elsewhere.example"))
    visit(again, google).sign_in("ana")
    (ana,) = again.owners.list()
    space = again.engine.spaces(ana.id)[0].id
    memory = again.engine.save(ana.id, space, "test", Draft("The boat is called Ondina")).memory
    eve = visit(again, google)
    eve.sign_in("eve")
    assert eve.person.is_signed_in
    assert eve.person.get(f"/memories/{memory.id}").status_code == 404
    again.database.close()


def test_the_first_account_that_opens_the_setup_link_becomes_the_owner(
    parts: Vademecum, google: Google
) -> None:
    again = restarted(parts, google, allowed_emails=())
    link = issue_setup_link(again.identity, None, PUBLIC_URL)
    another = issue_setup_link(again.identity, None, PUBLIC_URL)
    eve, ana = visit(again, google), visit(again, google)
    assert eve.sign_in("eve").status_code == 403, "without the link nobody enters"
    page = ana.person.open(link)
    assert "setup link" in page.text
    assert visit(again, google).person.open(link).status_code == 200, "looking spends nothing"
    assert ana.sign_in("ana", page).status_code == 303
    assert ana.person.is_signed_in
    for spent in (link, another):
        assert eve.person.open(spent).status_code == 410
    assert [owner.label for owner in again.owners.list()] == ["an…@example.org"]
    again.database.close()


def test_of_two_first_links_that_race_one_makes_the_owner(parts: Vademecum, google: Google) -> None:
    again = restarted(parts, google, allowed_emails=())
    people = [visit(again, google), visit(again, google)]
    pages = [each.person.open(issue_setup_link(again.identity, None, PUBLIC_URL)) for each in people]
    with ThreadPoolExecutor(2) as pool:
        jobs = zip(people, ("ana", "eve"), pages, strict=True)
        answers = list(pool.map(lambda each: each[0].sign_in(each[1], each[2]), jobs))
    assert sorted(answer.status_code for answer in answers) == [303, 410]
    assert len(again.owners.list()) == 1
    again.database.close()


def test_a_setup_link_does_not_let_in_who_is_not_on_the_list(parts: Vademecum, google: Google) -> None:
    owner = parts.admission.create(Identity("firebase", ISSUER, "ana", "ana@example.org"))
    link = issue_setup_link(parts.identity, owner.id, PUBLIC_URL)
    eve = visit(parts, google)
    assert eve.sign_in("eve", eve.person.open(link)).status_code == 403
    assert visit(parts, google).person.open(link).status_code == 200, "and it still works"
