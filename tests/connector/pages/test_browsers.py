"""Cookies, sessions and forms: whose browser it is, and that only its own pages speak for it."""

import re

import httpx2
import pytest

from store.errors import StoreError
from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand
from tests.oauth.stand import Host, query

COOKIE = "__Host-vademecum"
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null", "Sec_Fetch_Site": "cross-site"},
    {"Origin": "null"},
    {"Origin": "https://memory.example.org.evil.example"},
    {"Origin": "http://memory.example.org"},
    {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
]


@pytest.mark.threat("CS-04")
@pytest.mark.parametrize("headers", FOREIGN)
def test_a_form_sent_from_elsewhere_is_refused(
    stand: Stand, person: Person, host: Host, headers: dict[str, str]
) -> None:
    question = person.consent_page(stand.url(host))
    fields = Form(question.text).replace(decision="allow")
    assert person.post("/consent", fields, **headers).status_code == 403
    assert stand.records.select("grant", "client_id", host.client_id) == []


@pytest.mark.threat("CS-04")
def test_another_browsers_good_fields_are_refused_even_from_our_own_origin(stand: Stand, host: Host) -> None:
    victim, attacker = stand.person(), stand.person()
    victim.consent_page(stand.url(host))
    fields = Form(attacker.consent_page(stand.url(host)).text).replace(decision="allow")
    assert victim.post("/consent", fields).status_code == 403


def test_a_browser_that_hides_its_origin_must_say_same_origin(
    stand: Stand, person: Person, host: Host
) -> None:
    fields = Form(person.consent_page(stand.url(host)).text).replace(decision="allow")
    assert person.post("/consent", fields, Origin="null", Sec_Fetch_Site="same-origin").status_code == 303


@pytest.mark.threat("CS-04")
@pytest.mark.parametrize("token", [None, "", "x", "é"])
def test_a_form_without_its_token_is_refused(
    stand: Stand, person: Person, host: Host, token: str | None
) -> None:
    fields = [field for field in Form(person.consent_page(stand.url(host)).text).fields if field[0] != "csrf"]
    fields += [("decision", "allow")] + ([("csrf", token)] if token is not None else [])
    assert person.post("/consent", fields).status_code == 403


@pytest.mark.threat("CS-04")
def test_the_token_of_one_request_is_no_good_for_another(stand: Stand, person: Person, host: Host) -> None:
    first = Form(person.consent_page(stand.url(host)).text)
    second = Form(person.consent_page(stand.url(host)).text)
    mixed = second.replace(csrf=dict(first.fields)["csrf"], decision="allow")
    assert person.post("/consent", mixed).status_code == 403


@pytest.mark.threat("CS-05")
def test_a_prepared_approval_is_worthless_in_another_browser(stand: Stand, host: Host) -> None:
    attacker, victim = stand.person(), stand.person()
    question = attacker.consent_page(stand.url(host))
    fields = Form(question.text).replace(decision="allow")
    assert stand.person().post("/consent", fields).status_code == 403
    victim.sign_in()
    assert victim.post("/consent", fields).status_code == 403
    # Nor does it help to let the victim open the question itself.
    assert victim.open(str(question.url)).status_code == 400


@pytest.mark.threat("CS-11")
def test_a_cookie_planted_before_sign_in_is_worthless_after_it(stand: Stand, host: Host) -> None:
    attacker, victim = stand.person(), stand.person()
    page = attacker.open(stand.url(host))
    planted = attacker.http.cookies[COOKIE]
    victim.plant(COOKIE, planted)
    victim.submit(victim.get(str(page.url)), passphrase=PASSPHRASE)
    assert victim.http.cookies[COOKIE] != planted
    assert victim.is_signed_in and not attacker.is_signed_in
    assert attacker.open(str(page.url)).status_code == 400


@pytest.mark.threat("CS-12")
def test_nobody_is_signed_in_by_a_form_that_their_browser_never_opened(stand: Stand) -> None:
    attacker, victim = stand.person(), stand.person()
    fields = Form(attacker.get("/sign-in").text).replace(passphrase=PASSPHRASE)
    answer = victim.post("/sign-in", fields)
    assert answer.status_code == 403 and "set-cookie" not in answer.headers
    victim.get("/")
    assert victim.post("/sign-in", fields).status_code == 403
    assert not victim.is_signed_in


def cookies_set(answers: list[httpx2.Response]) -> list[str]:
    return [cookie for answer in answers for cookie in answer.headers.get_list("set-cookie")]


def journey(stand: Stand, person: Person, host: Host) -> list[httpx2.Response]:
    page = person.open(stand.url(host))
    first = stand.person().get("/")
    signed_in = person.submit(page, passphrase=PASSPHRASE)
    question = person.follow(signed_in)
    allowed = person.submit(question, decision="allow")
    assert query(allowed.headers["location"])["code"] not in str(cookies_set([page, signed_in, allowed]))
    return [first, page, signed_in, question, allowed, sign_out(person)]


def sign_out(person: Person) -> httpx2.Response:
    token = re.findall(
        r'action="/sign-out">\s*<input type="hidden" name="csrf" value="([^"]+)"', person.get("/").text
    )
    return person.post("/sign-out", [("csrf", token[0])])


@pytest.mark.threat("CK-01")
@pytest.mark.threat("CK-03")
def test_the_cookie_is_for_this_host_over_tls_and_holds_nothing(
    stand: Stand, person: Person, host: Host
) -> None:
    cookies = cookies_set(journey(stand, person, host))
    assert len(cookies) >= 3
    for cookie in cookies:
        name_value, *attributes = cookie.split("; ")
        assert re.fullmatch(r"__Host-vademecum=[A-Za-z0-9_-]{43}", name_value)
        assert {"HttpOnly", "SameSite=Lax", "Path=/", "Secure"} <= set(attributes)
        assert "domain" not in cookie.lower()
    assert len({cookie.split(";")[0] for cookie in cookies}) == len(cookies)


@pytest.mark.threat("CK-02")
@pytest.mark.parametrize(
    "header",
    ["", "{}", "null", "a" * 3000, "%00", '"quoted"', "é", "flipped", "cut", "doubled", "=;=;", "; ; ;"],
)
def test_a_cookie_that_is_not_ours_means_nobody(stand: Stand, person: Person, header: str) -> None:
    person.sign_in()
    good = person.http.cookies[COOKIE]
    person.http.cookies.clear()
    value = {
        "flipped": good[:-2] + ("A" if good[-2] != "A" else "B") + good[-1],
        "cut": good[:20],
        "doubled": f"{good}; {COOKIE}={'B' * 43}",
    }.get(header, header)
    raw = f"{COOKIE}={value}".encode("latin-1")
    for path in ("/", "/sign-in", "/memories/x", "/consent?request=x", "/authorize"):
        answer = person.http.get(path, headers=[(b"Cookie", raw)])
        assert answer.status_code < 500
        assert "Signed in as" not in answer.text
        assert "set-cookie" in answer.headers or header == "flipped"
    assert person.http.post("/sign-out", headers=[(b"Cookie", raw)]).status_code in (403, 415)


@pytest.mark.threat("CK-03")
def test_signing_out_ends_the_session_on_the_server(stand: Stand, person: Person) -> None:
    person.sign_in()
    copied = person.http.cookies[COOKIE]
    assert person.follow(sign_out(person)).status_code == 200
    assert not person.is_signed_in
    thief = stand.person()
    thief.plant(COOKIE, copied)
    assert not thief.is_signed_in


@pytest.mark.parametrize(
    ("idle_days", "visits", "is_signed_in"), [(13, 6, True), (14, 1, False), (13, 7, False)]
)
def test_a_session_ends_after_14_idle_days_and_after_90_in_any_case(
    stand: Stand, person: Person, idle_days: int, visits: int, is_signed_in: bool
) -> None:
    person.sign_in()
    for _ in range(visits):
        stand.clock.advance(days=idle_days)
        last = person.is_signed_in
    assert last is is_signed_in


@pytest.mark.threat("AD-01")
def test_the_sessions_of_a_deleted_owner_are_nobodys(
    stand: Stand, person: Person, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = person.consent_page(stand.url(host))

    def gone(owner: str) -> None:
        raise StoreError("not_found", "no such owner")

    monkeypatch.setattr(stand.owners, "get", gone)
    assert not person.is_signed_in
    answer = person.submit(question, decision="allow")
    assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.threat("DS-01")
@pytest.mark.parametrize("path", ["/authorize", "/sign-in", "/consent", "/sign-out", "/setup/x"])
def test_a_form_has_a_size_and_a_shape(person: Person, path: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert person.http.post(path, content=b"a=" + b"b" * 70_000, headers=form).status_code == 413
    assert person.http.post(path, content=(b"x" * 1000 for _ in range(100)), headers=form).status_code == 413
    assert person.http.post(path, content=b"&".join([b"a=b"] * 5000), headers=form).status_code == 400
    assert person.http.post(path, json={}).status_code == 415
    assert person.http.post(path, files={"a": b"b"}).status_code == 415


@pytest.mark.threat("PP-01")
@pytest.mark.parametrize("raw", ["%ff%fe", "%00", "%ed%a0%80", "%c0%af", "%u0041", "%", "%zz"])
@pytest.mark.parametrize("path", ["/authorize", "/sign-in", "/consent", "/memories/x", "/"])
def test_odd_bytes_are_400(person: Person, path: str, raw: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert person.http.get(f"{path}?request={raw}&client_id=x").status_code == 400
    if path in ("/authorize", "/sign-in", "/consent"):
        assert person.http.post(path, content=f"request={raw}", headers=form).status_code == 400
