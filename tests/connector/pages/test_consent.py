"""Nobody gets a code without an owner who saw the question and pressed Allow; and what the question says."""

import re
from urllib.parse import urlencode

import pytest

from connector.pages.cookies import new_value
from store.memory import Space
from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand
from tests.oauth.stand import REDIRECT_URI, Host, query


@pytest.mark.threat("CS-01")
@pytest.mark.threat("AZ-07")
def test_the_code_takes_a_sign_in_and_a_press_of_allow(stand: Stand, person: Person, host: Host) -> None:
    asked = person.get(stand.url(host))
    assert asked.status_code == 303 and "code=" not in asked.headers["location"]
    page = person.follow(asked)
    assert page.status_code == 200 and 'name="passphrase"' in page.text
    signed_in = person.submit(page, passphrase=PASSPHRASE)
    assert signed_in.status_code == 303 and "code=" not in signed_in.headers["location"]
    question = person.follow(signed_in)
    assert question.status_code == 200 and Form(question.text).buttons == ["deny", "allow"]

    allowed = person.submit(question, decision="allow")
    assert allowed.status_code == 303
    assert allowed.headers["location"].startswith(REDIRECT_URI + "?")
    answer = query(allowed.headers["location"])
    assert (answer["state"], answer["iss"]) == ("s+t/a=t&e", stand.issuer)
    tokens = host.redeem(answer["code"], resource=f"{stand.issuer}/mcp")
    assert tokens.status_code == 200
    assert tokens.json()["scope"] == "memory:read memory:write"


@pytest.mark.threat("CS-03")
def test_the_question_names_client_destination_account_and_permissions(stand: Stand, person: Person) -> None:
    host = stand.host(client_name="Notes & co")
    page = person.consent_page(stand.url(host)).text
    assert page.count("Notes &amp; co") >= 2
    assert '<span class="host">client.example</span>' in page
    assert "unverified" in page
    assert "Owner" in page and "Use another account" in page
    assert Form(page).boxes[:2] == ["memory:read", "memory:write"]
    assert "Search and read everything" in page and "Save, pin and forget" in page


def test_what_is_asked_for_is_ticked_and_the_rest_is_not(stand: Stand, person: Person, host: Host) -> None:
    form = Form(person.consent_page(stand.url(host, scope="memory:read memory:delete")).text)
    assert [value for name, value in form.fields if name == "scope"] == ["memory:read"]
    assert form.boxes == [
        "memory:read",
        "memory:delete",
        "memory:write",
        "memory:maintain",
        "memory:export",
    ]


def test_what_the_owner_ticked_is_what_is_granted(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    fields = [field for field in Form(page.text).fields if field[0] != "scope"]
    fields += [("scope", "memory:read"), ("scope", "memory:export"), ("decision", "allow")]
    code = query(person.post("/consent", fields).headers["location"])["code"]
    tokens = host.redeem(code, resource=f"{stand.issuer}/mcp").json()
    assert tokens["scope"] == "memory:read memory:export"


def test_nothing_ticked_is_a_refusal(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    fields = [field for field in Form(page.text).fields if field[0] != "scope"]
    answer = query(person.post("/consent", [*fields, ("decision", "allow")]).headers["location"])
    assert answer["error"] == "access_denied" and "code" not in answer


def test_with_several_spaces_the_owner_chooses_where(
    stand: Stand, person: Person, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    (owner,) = stand.owners.list()
    now = stand.clock()
    spaces = [Space("s1", owner.id, "Home", now), Space("s2", owner.id, "Work", now)]
    monkeypatch.setattr(stand.engine, "spaces", lambda owner: spaces)
    for ticked, granted in ((["s1", "s2"], None), (["s2"], ["s2"])):
        fields = Form(person.consent_page(stand.url(host)).text).fields
        assert [value for name, value in fields if name == "space"] == ["s1", "s2"]
        fields = [field for field in fields if field[0] != "space"]
        fields += [("space", space) for space in [*ticked, "s9"]] + [("decision", "allow")]
        assert "code" in query(person.post("/consent", fields).headers["location"])
        assert granted in [grant["spaces"] for grant in stand.records.select("grant", "subject", owner.id)]
    fields = Form(person.consent_page(stand.url(host)).text).fields
    fields = [field for field in fields if field[0] != "space"] + [("decision", "allow")]
    assert query(person.post("/consent", fields).headers["location"])["error"] == "access_denied"


@pytest.mark.threat("CS-06")
def test_one_client_allowed_is_not_the_next_allowed(stand: Stand, person: Person, host: Host) -> None:
    person.submit(person.consent_page(stand.url(host)), decision="allow")
    other = stand.host(client_name="Another host")
    page = person.open(stand.url(other))
    assert page.status_code == 200 and "Another host" in page.text


@pytest.mark.threat("CS-13")
def test_a_client_on_loopback_is_asked_again_every_time(stand: Stand, person: Person) -> None:
    registered = "http://127.0.0.1:3000/callback"
    host = stand.host(redirect_uris=[registered])
    page = person.consent_page(stand.url(host, redirect_uri=registered))
    person.submit(page, decision="allow")
    for redirect_uri in (registered, "http://127.0.0.1:4000/callback"):
        again = person.open(stand.url(host, redirect_uri=redirect_uri))
        assert again.status_code == 200 and Form(again.text).buttons == ["deny", "allow"]
    silent = person.get(stand.url(host, redirect_uri=registered, prompt="none"))
    assert query(silent.headers["location"])["error"] == "consent_required"


@pytest.mark.threat("CI-11")
def test_a_program_on_this_computer_is_called_that_and_no_logo_is_loaded(
    stand: Stand, person: Person
) -> None:
    registered = "http://127.0.0.1:3000/callback"
    host = stand.host(redirect_uris=[registered], logo_uri="https://evil.example/logo.png")
    page = person.consent_page(stand.url(host, redirect_uri=registered)).text
    assert "A program on the computer you are using" in page
    assert "evil.example" not in page
    assert set(re.findall(r'src="([^"?]*)', page)) == {"/static/icon.svg"}


@pytest.mark.threat("CI-11")
@pytest.mark.parametrize(
    ("redirect_uri", "is_verified"),
    [
        ("https://app.example/callback", True),
        ("https://elsewhere.example/callback", False),
        ("http://127.0.0.1:3000/callback", False),
    ],
)
def test_a_document_speaks_only_for_its_own_host(
    stand: Stand, person: Person, host: Host, redirect_uri: str, is_verified: bool
) -> None:
    document = {
        "client_id": "https://app.example/client.json",
        "client_name": "App",
        "redirect_uris": [redirect_uri],
        "logo_uri": "https://logos.example/app.png",
    }
    stand.web.publish("https://app.example/client.json", document)
    url = stand.url(host, client_id="https://app.example/client.json", redirect_uri=redirect_uri)
    question = person.consent_page(url)
    page = question.text
    assert ("published by app.example" in page, "unverified" in page) == (is_verified, not is_verified)
    assert "app.example" in page and "logos.example" not in page
    assert ("A program on the computer" in page) == redirect_uri.startswith("http://127.0.0.1")
    assert "code=" in person.submit(question, decision="allow").headers["location"]


@pytest.mark.threat("CS-07")
def test_pressing_allow_twice_gives_one_code_twice(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    first = person.submit(page, decision="allow")
    second = person.submit(page, decision="allow")
    assert first.status_code == 303
    assert second.headers["location"] == first.headers["location"]
    (owner,) = stand.owners.list()
    assert len(stand.records.select("grant", "subject", owner.id)) == 1
    stand.clock.advance(seconds=60)
    assert person.submit(page, decision="allow").status_code == 400


@pytest.mark.threat("ST-01")
def test_the_kept_answer_is_of_use_to_nobody_but_that_browser(
    stand: Stand, person: Person, host: Host
) -> None:
    page = person.consent_page(stand.url(host))
    location = person.submit(page, decision="allow").headers["location"]
    pending_id = query(str(page.url))["request"]
    assert stand.context.decisions.find(pending_id, new_value()) is None
    kept = b"".join(path.read_bytes() for path in stand.path.iterdir())
    assert query(location)["code"].encode() not in kept


@pytest.mark.threat("CS-08")
def test_other_fields_of_the_form_change_nothing(stand: Stand, person: Person, host: Host) -> None:
    other = stand.host(client_name="Another host", redirect_uris=["https://evil.example/callback"])
    forged = {
        "redirect_uri": "https://evil.example/callback",
        "client_id": other.client_id,
        "code_challenge": "A" * 43,
        "resource": "https://evil.example/mcp",
        "state": "evil",
        "iss": "https://evil.example",
        "sub": "somebody",
        "owner": "somebody",
    }
    page = person.consent_page(stand.url(host))
    fields = Form(page.text).replace(decision="allow", **forged) + [("scope", "admin:everything")]
    answer = person.post(f"/consent?{urlencode(forged)}", fields)
    assert answer.headers["location"].startswith(REDIRECT_URI + "?")
    assert query(answer.headers["location"])["state"] == "s+t/a=t&e"
    tokens = host.redeem(query(answer.headers["location"])["code"], resource=f"{stand.issuer}/mcp")
    assert tokens.json()["scope"] == "memory:read memory:write"
    (grant,) = stand.records.select("grant", "client_id", host.client_id)
    assert grant["scopes"] == ["memory:read", "memory:write"]


@pytest.mark.threat("CS-09")
def test_an_approval_by_get_approves_nothing(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    answer = person.get("/consent?" + urlencode(Form(page.text).replace(decision="allow")))
    assert answer.status_code == 405 and "location" not in answer.headers
    assert person.submit(page, decision="allow").status_code == 303


@pytest.mark.threat("CS-10")
def test_deny_is_final_and_tells_the_client(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    denied = person.submit(page, decision="deny")
    assert denied.status_code == 303
    answer = query(denied.headers["location"])
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "s+t/a=t&e", stand.issuer)
    after = person.submit(page, decision="allow")
    assert "code=" not in after.headers.get("location", "")
    assert stand.records.select("grant", "client_id", host.client_id) == []


def test_a_missing_or_unknown_decision_is_a_refusal(stand: Stand, person: Person, host: Host) -> None:
    for fields in ({}, {"decision": "ALLOW"}):
        answer = person.submit(person.consent_page(stand.url(host)), **fields)
        assert query(answer.headers["location"])["error"] == "access_denied"


def test_a_question_waits_ten_minutes(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    stand.clock.advance(minutes=10)
    assert person.submit(page, decision="allow").status_code == 400
    assert person.open(str(page.url)).status_code == 400


@pytest.mark.threat("TN-05")
def test_another_account_since_the_question_was_shown_means_starting_again(
    stand: Stand, person: Person, host: Host
) -> None:
    stand.add_owner("Second", "another long passphrase")
    person.sign_in(account="owner")
    question = person.consent_page(stand.url(host))
    person.sign_in("another long passphrase", account="second")
    assert person.submit(question, decision="allow").status_code == 403
    again = person.open(str(question.url))
    assert "code=" not in str(again.headers)
    assert stand.records.select("grant", "client_id", host.client_id) == []


def test_use_another_account_goes_on_with_the_same_request_as_that_account(
    stand: Stand, person: Person, host: Host
) -> None:
    second = stand.add_owner("Second", "another long passphrase")
    person.sign_in(account="owner")
    question = person.consent_page(stand.url(host))
    (link,) = re.findall(r'href="(/sign-in\?request=[^"]+)"', question.text)
    signed_in = person.submit(person.get(link), account="Second", passphrase="another long passphrase")
    question = person.follow(signed_in)
    assert "<b>Second</b>" in question.text
    assert person.submit(question, decision="allow").status_code == 303
    assert len(stand.records.select("grant", "subject", second)) == 1


def test_two_apps_that_connect_at_once_both_get_their_answer(stand: Stand, person: Person) -> None:
    first, second = stand.host(client_name="First"), stand.host(client_name="Second")
    page = person.open(stand.url(first))
    waiting = person.open(stand.url(second))
    assert person.submit(
        person.follow(person.submit(page, passphrase=PASSPHRASE)), decision="allow"
    ).is_redirect
    again = person.open(str(waiting.url).replace("/sign-in", "/consent"))
    assert "Second" in again.text
    assert "code" in query(person.submit(again, decision="allow").headers["location"])


def test_a_client_that_is_gone_is_said_to_be_gone(stand: Stand, person: Person, host: Host) -> None:
    page = person.consent_page(stand.url(host))
    stand.records.delete("client", host.client_id)
    assert person.submit(page, decision="allow").status_code == 400
