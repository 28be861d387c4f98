"""Leaving: a fresh sign-in, everything taken along, a name typed, and then nothing."""

import json
from datetime import timedelta

import httpx2
import pytest

from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand
from tests.oauth.stand import Host

NAME = "memory.example.org"


def deletion_page(person: Person) -> httpx2.Response:
    page = person.open("/account/delete")
    if 'name="passphrase"' in page.text:
        page = person.follow(person.submit(page, passphrase=PASSPHRASE))
    assert Form(page.text).action == "/account/delete", page.text
    return page


def test_the_account_goes_when_the_name_is_typed(stand: Stand, person: Person, host: Host) -> None:
    (owner,) = stand.owners.list()
    stand.remember(owner.id, "first")
    stand.remember(owner.id, "second")
    person.submit(person.consent_page(stand.url(host)), decision="allow")
    page = deletion_page(person)
    for count in ("2 memories", "1 space", "1 connected app,"):
        assert count in page.text
    assert "token" not in page.text.partition("<main>")[2].replace("csrf", ""), (
        "what is not there is not listed"
    )
    assert page.text.index("/account/export") < page.text.index('name="confirmation"')
    deleted = person.submit(page, confirmation=f" {NAME.upper()} ")
    assert deleted.status_code == 200 and "Your account is deleted" in deleted.text
    assert "Signed in as" not in deleted.text and not person.is_signed_in
    assert stand.owners.list() == [] and list(stand.owners.closed()) == []
    assert stand.records.select("grant", "subject", owner.id) == []
    assert person.sign_in().status_code == 403


@pytest.mark.parametrize("typed", ["", "yes", "memory.example.com", NAME + "/"])
def test_anything_else_deletes_nothing(stand: Stand, person: Person, typed: str) -> None:
    answer = person.submit(deletion_page(person), confirmation=typed)
    assert answer.status_code == 400 and 'role="alert"' in answer.text
    assert person.is_signed_in and len(stand.owners.list()) == 1


@pytest.mark.parametrize("path", ["/account/delete", "/account/export"])
def test_a_sign_in_of_more_than_five_minutes_ago_is_not_enough(
    stand: Stand, person: Person, path: str
) -> None:
    person.sign_in()
    assert person.get(path).status_code == 200
    stand.clock.advance(minutes=5)
    assert person.get(path).status_code == 200
    stand.clock.advance(seconds=1)
    page = person.open(path)
    assert "Sign in once more" in page.text
    assert person.follow(person.submit(page, passphrase=PASSPHRASE)).status_code == 200


def test_a_form_that_waited_longer_than_that_is_asked_again(stand: Stand, person: Person) -> None:
    page = deletion_page(person)
    stand.clock.advance(minutes=6)
    answer = person.submit(page, confirmation=NAME)
    assert answer.headers["location"].startswith("/sign-in") and len(stand.owners.list()) == 1


@pytest.mark.threat("CS-04")
def test_the_deletion_needs_its_own_form(stand: Stand, person: Person) -> None:
    fields = Form(deletion_page(person).text).replace(confirmation=NAME)
    assert person.post("/account/delete", fields, Origin="https://evil.example").status_code == 403
    assert person.post("/account/delete", [("confirmation", NAME)]).status_code == 403
    assert len(stand.owners.list()) == 1


@pytest.mark.threat("AD-01")
def test_another_owner_keeps_everything(stand: Stand, person: Person) -> None:
    other = stand.add_owner("Second", "another long passphrase")
    memory = stand.remember(other, "theirs")
    (first, _) = stand.owners.list()
    stand.context.deletion.delete(first.id)
    assert [owner.id for owner in stand.owners.list()] == [other]
    assert person.sign_in("another long passphrase").status_code == 303
    assert "theirs" in person.get(f"/memories/{memory}").text


def test_the_page_names_the_backups_that_still_hold_it(stand: Stand, person: Person) -> None:
    assert "no backups" in deletion_page(person).text
    (stand.path / "backups").mkdir()
    for name in ("backups/vademecum-20260301.zip", "vademecum.before-2.db", "backups/.unfinished"):
        (stand.path / name).write_bytes(b"")
    page = deletion_page(person)
    assert "vademecum-20260301.zip" in page.text and "vademecum.before-2.db" in page.text
    assert ".unfinished" not in page.text and str(stand.path) not in page.text
    assert "vademecum-20260301.zip" in person.submit(page, confirmation=NAME).text


def test_the_export_has_every_memory_that_is_not_forgotten(stand: Stand, person: Person) -> None:
    (owner,) = stand.owners.list()
    for number in range(450):
        stand.remember(owner.id, f"memory {number}", state="wip" if number % 2 else "active")
        stand.clock.time += timedelta(seconds=1 if number % 3 else 0)
    forgotten = stand.remember(owner.id, "of no more use")
    stand.engine.forget(owner.id, [space.id for space in stand.engine.spaces(owner.id)], forgotten)
    person.sign_in()
    answer = person.get("/account/export")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["cache-control"] == "no-store"
    exported = [json.loads(line) for line in answer.text.splitlines()]
    assert {each["content"] for each in exported} == {f"memory {number}" for number in range(450)}
    assert len({each["id"] for each in exported}) == 450
    assert exported[0]["space"] == "default" and exported[1]["state"] in ("wip", "active")


def test_a_restored_account_is_closed_before_anybody_is_served(stand: Stand, person: Person) -> None:
    (owner,) = stand.owners.list()
    person.sign_in()
    stand.context.deletion.tombstones.add(owner.id, stand.clock())
    stand.context.deletion.close_restored()
    assert not person.is_signed_in
    assert stand.context.deletion.resume() == 1
    assert stand.context.deletion.resume() == 0


def test_a_tombstone_says_nothing_but_that(stand: Stand) -> None:
    (owner,) = stand.owners.list()
    tombstones = stand.context.deletion.tombstones
    assert not tombstones.holds(owner.id)
    for _ in range(2):
        tombstones.add(owner.id, stand.clock())
    assert tombstones.holds(owner.id) and not tombstones.holds(owner.id + "x")
    file = stand.path / "deleted-accounts"
    assert owner.id not in file.read_text() and len(file.read_text().split()) == 2
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(file.read_bytes()[:-30])
    tombstones.add("another", stand.clock())
    assert tombstones.holds("another"), "a line that a crash cut short spoils no other"
