"""The one-time link."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from connector.identity.setup_links import issue_setup_link
from tests.connector.pages.stand import PASSPHRASE, Person, Stand

NEW = "an entirely new passphrase"


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """Nobody owns it yet."""
    stand = Stand(tmp_path)
    yield stand
    stand.database.close()


def path(stand: Stand, owner: str | None = None) -> str:
    return urlsplit(issue_setup_link(stand.provider, owner, stand.issuer)).path


def choose(person: Person, link: str, passphrase: str = NEW, again: str | None = None) -> int:
    fields = {"passphrase": passphrase, "passphrase_again": passphrase if again is None else again}
    return person.submit(person.get(link), **fields).status_code


def test_the_link_makes_the_first_owner_and_signs_in(stand: Stand, person: Person) -> None:
    assert choose(person, path(stand)) == 303
    assert [owner.label for owner in stand.owners.list()] == ["Owner"]
    assert person.is_signed_in
    assert stand.person().sign_in(NEW).status_code == 303


def test_looking_at_the_link_or_a_bad_passphrase_does_not_spend_it(stand: Stand, person: Person) -> None:
    link = path(stand)
    for _ in range(3):
        assert person.get(link).status_code == 200
    assert choose(person, link, again="something else entirely") == 400
    assert choose(person, link, "short") == 400
    assert choose(person, link, "x" * 1025) == 400
    assert stand.owners.list() == []
    assert choose(person, link) == 303


def test_the_link_works_once_and_for_a_day(stand: Stand, person: Person) -> None:
    link = path(stand)
    open_page = stand.person()
    page = open_page.get(link)
    assert choose(person, link) == 303
    assert person.get(link).status_code == 410
    fields = {"passphrase": PASSPHRASE, "passphrase_again": PASSPHRASE}
    assert open_page.submit(page, **fields).status_code == 410
    (owner,) = stand.owners.list()
    again = path(stand, owner.id)
    assert choose(person, again, PASSPHRASE) == choose(person, path(stand, owner.id)) == 303
    assert person.get(again).status_code == 410
    late = path(stand, owner.id)
    stand.clock.advance(hours=24)
    assert person.get(late).status_code == 410
    assert stand.person().sign_in(NEW).status_code == 303


def test_a_second_link_for_the_first_owner_is_dead_once_there_is_one(stand: Stand, person: Person) -> None:
    first, second = path(stand), path(stand)
    page = stand.person()
    waiting = page.get(second)
    assert choose(person, first) == 303
    assert person.get(second).status_code == 410
    fields = {"passphrase": PASSPHRASE, "passphrase_again": PASSPHRASE}
    assert page.submit(waiting, **fields).status_code == 410
    assert stand.person().sign_in(PASSPHRASE).status_code == 403


def test_of_many_racing_first_owners_one_wins(stand: Stand) -> None:
    people = [stand.person() for _ in range(8)]
    opened = [(person, person.get(path(stand))) for person in people]
    fields = {"passphrase": NEW, "passphrase_again": NEW}
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda each: each[0].submit(each[1], **fields).status_code, opened)
    assert sorted(answers) == [303] + [410] * 7
    assert len(stand.owners.list()) == 1


def test_a_new_passphrase_for_an_owner_signs_every_browser_out(stand: Stand, person: Person) -> None:
    owner = stand.set_up()
    old = stand.person()
    old.sign_in()
    assert choose(person, path(stand, owner)) == 303
    assert not old.is_signed_in and person.is_signed_in
    assert stand.person().sign_in(PASSPHRASE).status_code == 403
    assert [each.id for each in stand.owners.list()] == [owner]


@pytest.mark.parametrize("token", ["x", "x" * 5000, "%00", "%ff", "{$ne}"])
def test_a_made_up_link_is_a_spent_link(stand: Stand, person: Person, token: str) -> None:
    assert person.get(f"/setup/{token}").status_code in (404, 410)


def test_the_store_does_not_hold_the_link(stand: Stand) -> None:
    token = path(stand).rpartition("/")[2]
    assert all(token.encode() not in file.read_bytes() for file in stand.path.iterdir())


def test_the_form_needs_its_token(stand: Stand, person: Person) -> None:
    link = path(stand)
    person.get(link)
    fields = [("passphrase", NEW), ("passphrase_again", NEW), ("csrf", "x")]
    assert person.post(link, fields).status_code == 403
    assert stand.owners.list() == []
