"""Signing in, being told no, and being told to wait."""

import re

import pytest

from oauth.records import NEVER
from store.errors import StoreError
from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand


def test_a_wrong_passphrase_is_refused_and_the_form_is_there_again(person: Person) -> None:
    answer = person.sign_in("correct horse battery stable")
    assert answer.status_code == 403 and 'role="alert"' in answer.text
    assert not person.is_signed_in
    assert person.submit(answer, passphrase=PASSPHRASE).headers["location"] == "/"
    assert person.is_signed_in


@pytest.mark.parametrize("passphrase", ["", " ", PASSPHRASE.upper(), PASSPHRASE + " ", "x" * 5000])
def test_almost_the_passphrase_is_wrong(person: Person, passphrase: str) -> None:
    assert person.sign_in(passphrase).status_code == 403


@pytest.mark.threat("DS-07")
def test_failures_slow_down_and_say_when_to_come_back(stand: Stand, person: Person) -> None:
    for _ in range(5):
        assert person.sign_in("wrong").status_code == 403
    waited = person.sign_in(PASSPHRASE)
    assert waited.status_code == 429
    assert waited.headers["retry-after"] == "1"
    assert "Try again in 1 second." in waited.text
    stand.clock.advance(seconds=1)
    assert person.sign_in("wrong").status_code == 403
    assert person.sign_in(PASSPHRASE).headers["retry-after"] == "2"
    stand.clock.advance(seconds=2)
    assert person.sign_in(PASSPHRASE).status_code == 303
    assert person.sign_in("wrong").status_code == 403, "a success forgets the failures"


def test_successful_sign_ins_are_never_slowed_down(stand: Stand) -> None:
    assert {stand.person().sign_in().status_code for _ in range(60)} == {303}


@pytest.mark.threat("DS-07")
def test_strangers_at_the_door_do_not_lock_out_the_owners_own_browser(stand: Stand, person: Person) -> None:
    person.sign_in()
    for _ in range(8):
        stand.person().sign_in("wrong")
    assert stand.person().sign_in(PASSPHRASE).status_code == 429
    assert person.sign_in(PASSPHRASE).status_code == 303
    for _ in range(5):
        person.sign_in("wrong")
    assert person.sign_in(PASSPHRASE).status_code == 429, "but its own failures count"


@pytest.mark.threat("DS-07")
def test_guessing_at_many_accounts_closes_the_door_to_unknown_browsers_only(stand: Stand) -> None:
    stand.add_owner("Second", "another long passphrase")
    known = stand.person()
    known.sign_in(account="Owner")
    for number in range(100):
        stand.person().sign_in("wrong", account=f"nobody-{number}")
    assert stand.person().sign_in(account="Owner").status_code == 429
    assert known.sign_in(account="Owner").status_code == 303
    stand.clock.advance(minutes=10)
    assert stand.person().sign_in(account="Owner").status_code == 303


def test_with_several_owners_the_account_is_asked_for_and_matters(stand: Stand, person: Person) -> None:
    assert 'name="account"' not in person.get("/sign-in").text
    stand.add_owner("Second", "another long passphrase")
    assert 'name="account"' in person.get("/sign-in").text
    assert person.sign_in(account="Second").status_code == 403
    assert person.sign_in(account="unknown").status_code == 403
    assert person.sign_in("another long passphrase", account=" second ").status_code == 303
    assert "Signed in as <b>Second</b>" in person.get("/").text


def test_without_an_owner_the_page_says_so_and_nothing_gets_in(stand: Stand, person: Person) -> None:
    (owner,) = stand.owners.list()
    stand.records.delete("passphrase", owner.id)
    assert "Nobody owns this server yet" in person.get("/sign-in").text
    assert "Nobody owns this server yet" in person.get("/").text
    assert person.sign_in().status_code == 403
    assert person.sign_in("").status_code == 403


def test_somebody_who_is_no_owner_is_told_whose_server_it_is_not(stand: Stand, person: Person) -> None:
    (owner,) = stand.owners.list()
    value = stand.records.get("passphrase", owner.id)
    assert value is not None
    stand.records.swap("passphrase", owner.id, value, value | {"subject": "somebody"}, NEVER)
    answer = person.sign_in()
    assert answer.status_code == 403 and "belongs to somebody else" in answer.text
    assert not person.is_signed_in


def test_a_link_to_a_memory_leads_there_after_sign_in(stand: Stand, person: Person) -> None:
    (owner,) = stand.owners.list()
    memory_id = stand.remember(owner.id, "first line\n  <b>second</b> line", topic="a <i>topic</i>")
    page = person.get(f"/memories/{memory_id}")
    assert memory_id not in page.headers["location"]
    page = person.follow(page)
    answer = person.submit(page, passphrase=PASSPHRASE)
    assert answer.headers["location"] == f"/memories/{memory_id}"
    memory = person.follow(answer)
    assert 'dir="auto">first line\n  &lt;b&gt;second&lt;/b&gt; line</div>' in memory.text
    assert "a &lt;i&gt;topic&lt;/i&gt;" in memory.text
    assert person.submit(page, passphrase=PASSPHRASE).status_code == 400, "the way there was for once"


@pytest.mark.threat("TN-01")
def test_anothers_memory_reads_like_one_that_does_not_exist(stand: Stand, person: Person) -> None:
    theirs = stand.remember(stand.add_owner("Second", "another long passphrase"), "a secret")
    person.sign_in(account="Owner")
    foreign, missing = person.get(f"/memories/{theirs}"), person.get(f"/memories/{'x' * len(theirs)}")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert re.sub(r'value="[^"]*"', "", foreign.text) == re.sub(r'value="[^"]*"', "", missing.text)


@pytest.mark.threat("LG-02")
def test_a_store_that_is_down_is_said_to_be_down(
    stand: Stand, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(cookie: str) -> None:
        raise StoreError("unavailable", "the disk is full: /var/lib/secret")

    person.sign_in()
    monkeypatch.setattr(stand.records, "get", lambda kind, key: down(key))
    answer = person.get("/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "disk" not in answer.text and answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("memory_id", ["x" * 129, "a%00b", "__x__", "%ff", "{$ne}", "%e2%80%ae"])
def test_odd_memory_ids_are_not_found(person: Person, memory_id: str) -> None:
    person.sign_in()
    assert person.get(f"/memories/{memory_id}").status_code in (400, 404)


def test_on_this_machine_over_http_the_cookie_has_a_plain_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stand = Stand(tmp_path_factory.mktemp("state"), "http://127.0.0.1:8788")
    stand.set_up()
    person = stand.person()
    answer = person.sign_in()
    assert answer.headers["set-cookie"].startswith("vademecum=")
    assert "Secure" not in answer.headers["set-cookie"]
    assert "strict-transport-security" not in answer.headers
    assert person.is_signed_in
    stand.database.close()


def test_the_home_page_names_the_address_to_connect(person: Person) -> None:
    home = person.get("/")
    assert home.status_code == 200 and "https://memory.example.org/mcp" in home.text
    assert Form(home.text).action == ""


def test_static_files_are_ours_and_may_be_kept(person: Person) -> None:
    page = person.get("/").text
    urls = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    assert {url.partition("?")[0] for url in urls} == {"/static/pages.css", "/static/icon.svg"}
    for url in urls:
        answer = person.get(url)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
