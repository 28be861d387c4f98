"""`/authorize`: who is answered where, and what strangers' words become on a page."""

import re
from urllib.parse import urlencode

import httpx2
import pytest

from oauth.clients import Client
from oauth.records import NEVER
from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand
from tests.oauth.stand import REDIRECT_URI, Host, query

BROKEN: list[dict[str, str | None]] = [
    {"response_type": "token"},
    {"response_type": None},
    {"code_challenge": None},
    {"code_challenge_method": "plain"},
    {"resource": "https://elsewhere.example/mcp"},
    {"prompt": "none"},
]
SCRIPT = '"><script>alert(1)</script>\r\nX-Injected: 1'


@pytest.mark.threat("OR-02")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_request_never_bounces_a_signed_out_browser_to_a_self_registered_client(
    stand: Stand, person: Person, host: Host, broken: dict[str, str | None]
) -> None:
    answer = person.get("/authorize?" + urlencode(host.params(**broken)))
    assert answer.status_code == 400 and "location" not in answer.headers


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_request_of_a_signed_in_owner_is_told_to_the_client(
    stand: Stand, person: Person, host: Host, broken: dict[str, str | None]
) -> None:
    person.sign_in()
    answer = person.get("/authorize?" + urlencode(host.params(**broken)))
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(REDIRECT_URI + "?")
    told = query(answer.headers["location"])
    assert (told["state"], told["iss"]) == ("s+t/a=t&e", stand.issuer)
    assert "error" in told and "code" not in told


def test_a_broken_request_of_the_operators_client_is_told_to_it(stand: Stand, person: Person) -> None:
    client = Client(
        client_id="vmc_pre_" + "0" * 32,
        client_name="Entered",
        redirect_uris=(REDIRECT_URI,),
        token_endpoint_auth_method="none",
        created_at=stand.clock(),
    )
    stand.records.create("client", client.client_id, client.to_value(), NEVER)
    answer = person.get(f"/authorize?client_id={client.client_id}&redirect_uri={REDIRECT_URI}&state=s")
    assert query(answer.headers["location"])["error"] == "invalid_request"


@pytest.mark.threat("AZ-01")
@pytest.mark.parametrize("client_id", [None, "", "unknown", "vmc_dcr_" + "0" * 32])
def test_an_unknown_client_gets_a_page_that_says_how_to_mend_it(
    person: Person, host: Host, client_id: str | None
) -> None:
    for sign_in in (False, True):
        if sign_in:
            person.sign_in()
        answer = person.get("/authorize?" + urlencode(host.params(client_id=client_id)))
        assert answer.status_code == 400 and "location" not in answer.headers
        assert "remove the connector" in answer.text and "invalid_client" in answer.text


@pytest.mark.threat("CI-08")
def test_a_client_whose_document_cannot_be_had_is_told_apart_from_one_that_has_none(
    stand: Stand, person: Person, host: Host
) -> None:
    url = "https://app.example/client.json"
    missing = person.get(stand.url(host, client_id=url))
    assert missing.status_code == 400 and "remove the connector" in missing.text
    stand.web.answers[url] = httpx2.ConnectError("down")
    params = host.params(client_id=url)
    for answer in (person.get("/authorize?" + urlencode(params)), person.post("/authorize", params)):
        assert answer.status_code == 503 and answer.headers["retry-after"]
        assert "does not answer" in answer.text
    for odd in ("http://app.example/client.json", "https://127.0.0.1/client.json"):
        assert person.get(stand.url(host, client_id=odd)).status_code == 400


@pytest.mark.threat("AZ-09")
def test_a_parameter_sent_twice_is_refused_and_a_doubled_state_is_not_guessed(
    person: Person, host: Host
) -> None:
    person.sign_in()
    doubled = person.get("/authorize?" + urlencode([*host.params(), ("state", "other")]))
    told = query(doubled.headers["location"])
    assert told["error"] == "invalid_request" and "state" not in told
    unproven = person.get("/authorize?" + urlencode([*host.params(), ("redirect_uri", REDIRECT_URI)]))
    assert unproven.status_code == 400


def test_a_request_by_post_is_the_same_request(stand: Stand, person: Person, host: Host) -> None:
    params = host.params(resource=f"{stand.issuer}/mcp")
    page = person.follow(person.post("/authorize", params, Origin="https://client.example"))
    assert 'name="passphrase"' in page.text
    broken = person.post("/authorize", host.params(response_type="token"))
    assert broken.status_code == 400
    assert person.post("/authorize", [*params, ("client_id", host.client_id)]).status_code == 400


def test_a_post_from_the_clients_own_site_signs_nobody_out(stand: Stand, person: Person, host: Host) -> None:
    """A cross-site POST comes without the `Lax` cookie; a new one in the answer would replace the session."""
    person.sign_in()
    session = dict(person.http.cookies)
    person.http.cookies.clear()
    answer = person.post(
        "/authorize", host.params(resource=f"{stand.issuer}/mcp"), Origin="https://client.example"
    )
    assert "set-cookie" not in answer.headers
    for name, value in session.items():
        person.plant(name, value)
    assert Form(person.follow(answer).text).buttons == ["deny", "allow"]


def test_other_methods_are_405(person: Person) -> None:
    for path, allow in (("/authorize", "GET, HEAD, POST"), ("/sign-out", "POST"), ("/", "GET, HEAD")):
        answer = person.http.request("DELETE", path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)
        assert answer.headers["content-type"].startswith("text/html")


def test_a_client_may_ask_for_another_sign_in(stand: Stand, person: Person, host: Host) -> None:
    person.sign_in()
    page = person.open(stand.url(host, prompt="login"))
    assert 'name="passphrase"' in page.text
    assert Form(person.follow(person.submit(page, passphrase=PASSPHRASE)).text).action == "/consent"


def flow(stand: Stand, person: Person, host: Host, **changes: str) -> list[httpx2.Response]:
    """Every answer of a whole flow, and of what can go wrong."""
    asked = person.get(stand.url(host, **changes))
    page = person.follow(asked)
    wrong = person.submit(page, passphrase="wrong")
    signed_in = person.submit(page, passphrase=PASSPHRASE)
    question = person.follow(signed_in)
    allowed = person.submit(question, decision="allow")
    stand.clock.advance(minutes=2)
    return [
        asked,
        page,
        wrong,
        signed_in,
        question,
        allowed,
        person.submit(question, decision="allow"),
        person.get("/authorize"),
        person.get("/authorize?%ff"),
        person.post("/consent", []),
        person.post("/consent", [("x", "y" * 70_000)]),
        person.get("/memories/none"),
        person.get("/setup/none"),
        person.get("/"),
        person.get("/signed-out"),
        person.http.request("PUT", "/consent"),
    ]


@pytest.mark.threat("CS-02")
@pytest.mark.threat("AZ-08")
@pytest.mark.threat("CK-03")
def test_every_answer_forbids_framing_scripts_caching_and_referrers(
    stand: Stand, person: Person, host: Host
) -> None:
    answers = flow(stand, person, host)
    assert {answer.status_code for answer in answers} == {200, 303, 400, 403, 404, 405, 410, 413}
    for answer in answers:
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert (policy["default-src"], policy["script-src"]) == ("'none'", "'none'")
        assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
        assert "unsafe-inline" not in str(policy) and "form-action" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        assert "access-control-allow-origin" not in answer.headers
        assert not re.search(r"<script|<style|\son\w+=|\sstyle=|javascript:", answer.text)


@pytest.mark.threat("OR-01")
@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x"]
)
def test_no_parameter_says_where_to_go(stand: Stand, person: Person, host: Host, target: str) -> None:
    names = ("next", "return_to", "continue", "url", "redirect", "target", "path", "request", "redirect_uri")
    extra = {name: target for name in names if name not in ("request", "redirect_uri")}
    answers = [person.get(f"/{path}?{urlencode({name: target})}") for name in names for path in PATHS]
    page = person.open(stand.url(host) + "&" + urlencode(extra))
    signed_in = person.submit(page, passphrase=PASSPHRASE, **extra)
    question = person.follow(signed_in)
    answers += [page, signed_in, question, person.submit(question, decision="allow", **extra)]
    answers += [person.sign_in(**extra), person.submit(person.get("/"), **extra)]
    for answer in answers:
        location = answer.headers.get("location", "/")
        assert location.startswith(REDIRECT_URI + "?") or re.match(r"/[a-z-]*(\?|$)", location), location


PATHS = ("sign-in", "consent", "authorize", "signed-out", "memories/x", "")


@pytest.mark.threat("AZ-05")
@pytest.mark.threat("DC-11")
def test_nothing_of_a_request_or_a_registration_reaches_a_page_unescaped(
    stand: Stand, person: Person
) -> None:
    name = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    host = stand.host(client_name=name, client_uri="https://client.example/<script>")
    answers = flow(stand, person, host, state=SCRIPT, scope=SCRIPT, nonce=SCRIPT, login_hint=SCRIPT)
    assert any("&lt;script&gt;" in answer.text for answer in answers), "the name is shown somewhere"
    for parameter, _ in host.params():
        answers.append(person.get("/authorize?" + urlencode(host.params(**{parameter: SCRIPT}))))
    answers += [
        person.get("/sign-in?" + urlencode({"request": SCRIPT})),
        person.get("/memories/" + SCRIPT.replace("/", "").replace("\r\n", "")),
    ]
    for answer in answers:
        assert "<script" not in answer.text and "<img src=x" not in answer.text
        assert "x-injected" not in answer.headers


@pytest.mark.threat("DC-12")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Cla\u200bude", "Claude"),
        ("\u202eedualC", "edualC"),
        ("Claude\u2028(verified)\nby Anthropic", "Claude (verified) by Anthropic"),
        ("Z\u0301\u0302\u0303\u0304\u0305algo", None),
        ("\u3164\u2800\u200b", "An app without a name"),
        ("N" * 2800, "N" * 79 + "…"),
    ],
)
def test_a_name_cannot_hide_turn_around_or_run_on(
    stand: Stand, person: Person, name: str, shown: str | None
) -> None:
    """Whatever registration let through: the record is written here as an old version might have left it."""
    host = stand.host()
    value = stand.records.get("client", host.client_id)
    assert value is not None
    stand.records.swap("client", host.client_id, value, value | {"client_name": name}, NEVER)
    page = person.consent_page(stand.url(host)).text
    (heading,) = re.findall(r'<bdi class="client">(.*?)</bdi>', page)
    assert heading == shown if shown else len(heading) <= len("Zalgo") + 2
    assert not re.search("[\u200b-\u200f\u2028-\u202e\u2066-\u2069\x00]", page)
