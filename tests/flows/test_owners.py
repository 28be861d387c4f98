"""`vademecum owner` against a running server: adding, linking, removing, and moving to another provider."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector import cli
from connector.app import Vademecum
from connector.identity.setup import set_passphrase
from connector.settings import Settings
from oauth import personal_tokens
from oauth.errors import InvalidToken
from store.memory import Draft
from tests.flows.accounts import Visitor, firebase_settings, restarted, visit
from tests.flows.conftest import PUBLIC_URL, Clock
from tests.flows.google import Google
from tests.processes import PASSPHRASE

Run = Callable[..., Any]


@pytest.fixture
def google(clock: Clock) -> Google:
    google = Google(clock)
    google.add("ana", "ana@example.org")
    google.add("eve", "eve@elsewhere.example")
    return google


@pytest.fixture
def parts(tmp_path: Path, clock: Clock, google: Google) -> Iterator[Vademecum]:
    """Everybody may have memories here."""
    settings = firebase_settings(tmp_path, allowed_emails=(), open_sign_up=True)
    parts = Vademecum(settings, clock, clock.monotonic, provider_transport=google.transport())
    yield parts
    parts.database.close()


@pytest.fixture
def ana(parts: Vademecum, google: Google) -> Iterator[Visitor]:
    visitor = visit(parts, google)
    with visitor.person.http:
        yield visitor


@pytest.fixture
def run(parts: Vademecum, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `vademecum owner …` on the same installation; its output, or the one line of its failure."""

    def run(*arguments: str, on: Vademecum = parts, code: int = 0) -> Any:
        monkeypatch.setattr("connector.commands.owner.open_installation", lambda: on)
        monkeypatch.setattr(sys, "argv", ["vademecum", "owner", *arguments])
        with pytest.raises(SystemExit) as exited:
            cli.main()
        out, err = capsys.readouterr()
        assert int(exited.value.code or 0) == code, err
        if code:
            return err
        return json.loads(out) if "--json" in arguments else out.strip()

    return run


@pytest.mark.threat("FB-05")
def test_a_removed_owners_sessions_grants_and_tokens_die_at_once_and_stay_dead(
    ana: Visitor, parts: Vademecum, google: Google, clock: Clock, run: Run
) -> None:
    tokens = ana.connect("ana")
    server = parts.authorization_server
    (owner,) = parts.owners.list()
    profile = personal_tokens.Profile(frozenset({"memory:read"}))
    _, secret = personal_tokens.create(server, owner.id, "agent", profile)
    assert ana.host.mcp(tokens["access_token"], "tools/list").status_code == 200
    page = ana.person.open("/sign-in")

    run("remove", owner.id)
    assert ana.host.mcp(tokens["access_token"], "tools/list").status_code == 401
    assert ana.host.mcp(secret, "tools/list").status_code == 401
    assert ana.refresh(tokens).json()["error"] == "invalid_grant"
    assert not ana.person.is_signed_in
    with pytest.raises(InvalidToken):
        personal_tokens.verify(server, secret)
    answer = ana.person.submit(page, **google.sign_in("ana"))
    assert answer.status_code == 403, "not even open sign-up lets them in"
    assert "taken this account" in answer.text
    assert [row["removed"] for row in run("list", "--json")] == [True]


def test_an_authorization_under_way_does_not_outlive_the_removal(
    ana: Visitor, parts: Vademecum, run: Run, clock: Clock
) -> None:
    ana.sign_in("ana")
    ana.host.register()
    consent = ana.person.open(ana.host.authorization_url())
    (owner,) = parts.owners.list()
    run("remove", owner.id)
    answer = ana.person.submit(consent, decision="allow")
    assert "code=" not in answer.headers.get("location", "")


def test_a_removed_owner_can_be_readmitted_and_has_kept_the_memories(
    ana: Visitor, parts: Vademecum, run: Run
) -> None:
    ana.sign_in("ana")
    (owner,) = parts.owners.list()
    memory = remember(parts, owner.id)
    run("remove", owner.id)
    assert "removed" in run("setup-link", "--owner", owner.id, code=1)
    assert "removed" in run("link", "--owner", owner.id, "--uid", "eve", code=1)
    run("readmit", owner.id)
    assert ana.sign_in("ana").status_code == 303
    assert ana.person.get(f"/memories/{memory}").status_code == 200


def remember(parts: Vademecum, owner: str) -> str:
    space = parts.engine.spaces(owner)[0].id
    return parts.engine.save(owner, space, "test", Draft("The boat is called Ondina")).memory.id


@pytest.mark.parametrize("by_link", [True, False])
def test_an_owner_moves_from_passphrase_to_firebase_with_all_memories(
    tmp_path: Path, clock: Clock, google: Google, run: Run, by_link: bool
) -> None:
    state_dir = tmp_path / "moving"
    before = Vademecum(Settings(state_dir=state_dir, embedder="none", public_url=PUBLIC_URL), clock)
    owner = set_passphrase(before.passphrases, None, PASSPHRASE)
    memory = remember(before, owner)
    visitor = visit(before, google)
    page = visitor.person.open("/sign-in")
    assert visitor.person.submit(page, passphrase=PASSPHRASE).status_code == 303
    before.database.close()
    clock.advance(minutes=1)

    settings = firebase_settings(state_dir, allowed_emails=())
    after = Vademecum(settings, clock, clock.monotonic, provider_transport=google.transport())
    moved = visit(after, google)
    assert moved.sign_in("ana").status_code == 403
    if by_link:
        link = run("setup-link", on=after)
        assert moved.sign_in("ana", moved.person.open(link)).status_code == 303
    else:
        run("link", "--uid", "ana", on=after)
        assert moved.sign_in("ana").status_code == 303
    assert moved.person.get(f"/memories/{memory}").status_code == 200
    (only,) = after.owners.list()
    assert only.id == owner
    assert [each.provider for each in only.identities] == ["passphrase", "firebase"]
    assert visit(after, google).sign_in("eve").status_code == 403
    after.database.close()


def test_an_account_that_opens_one_memory_cannot_be_given_another(
    ana: Visitor, parts: Vademecum, google: Google, run: Run
) -> None:
    ana.sign_in("ana")
    eve = visit(parts, google)
    eve.sign_in("eve")
    first, _ = (owner.id for owner in parts.owners.list())
    assert "another owner" in run("link", "--owner", first, "--uid", "eve", code=1)
    link = run("link", "--owner", first)
    answer = eve.sign_in("eve", eve.person.open(link))
    assert answer.status_code == 403 and "already opens another memory" in answer.text


def test_owners_are_added_by_account_or_by_a_link(parts: Vademecum, google: Google, run: Run) -> None:
    closed = restarted(parts, google, allowed_emails=())
    assert run("add", "Ana", "--uid", "ana", "--json", on=closed)["account"] == "Ana"
    assert "already" in run("add", "Ana", "--uid", "ana", on=closed, code=1)
    assert visit(closed, google).sign_in("ana").status_code == 303
    link = run("add", "Eve", "--json", on=closed)["setup_link"]
    eve = visit(closed, google)
    assert eve.sign_in("eve", eve.person.open(link)).status_code == 303
    listed = run("list", "--json", on=closed)
    assert [row["account"] for row in listed] == ["Ana", "Eve"]
    assert [row["identities"][0]["provider"] for row in listed] == ["firebase", "firebase"]
    assert eve.person.open(link).status_code == 410
    closed.database.close()


def test_with_passphrases_a_link_adds_an_owner_with_memories_of_their_own(
    tmp_path: Path, clock: Clock, google: Google, run: Run
) -> None:
    settings = Settings(state_dir=tmp_path / "local", embedder="none", public_url=PUBLIC_URL)
    parts = Vademecum(settings, clock, clock.monotonic)
    first = set_passphrase(parts.passphrases, None, PASSPHRASE)
    person = visit(parts, google).person
    page = person.open(run("add", "Second", on=parts))
    given = "another long passphrase"
    assert person.submit(page, passphrase=given, passphrase_again=given).status_code == 303
    assert "Signed in as <b>Second</b>" in person.get("/").text
    assert person.get(f"/memories/{remember(parts, first)}").status_code == 404
    assert "--uid needs" in run("add", "Third", "--uid", "x", on=parts, code=1)
    assert "the name is empty" in run("add", " ", on=parts, code=1)

    run("remove", first, on=parts)
    assert "Account" not in visit(parts, google).person.open("/sign-in").text
    other = visit(parts, google).person
    assert other.submit(other.open("/sign-in"), passphrase=PASSPHRASE).status_code == 403
    parts.database.close()


def test_the_last_owner_removed_leaves_a_server_that_can_be_set_up_again(
    tmp_path: Path, clock: Clock, google: Google, run: Run
) -> None:
    settings = Settings(state_dir=tmp_path / "local", embedder="none", public_url=PUBLIC_URL)
    parts = Vademecum(settings, clock, clock.monotonic)
    first = set_passphrase(parts.passphrases, None, PASSPHRASE)
    run("remove", first, on=parts)
    person = visit(parts, google).person
    page = person.open(run("setup-link", on=parts))
    assert person.submit(page, passphrase=PASSPHRASE, passphrase_again=PASSPHRASE).status_code == 303
    assert person.is_signed_in
    assert [parts.admission.is_removed(owner.id) for owner in parts.owners.list()] == [True, False]
    parts.database.close()
