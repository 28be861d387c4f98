"""An export loses nothing: imported into an empty server and exported again, it is the same bytes."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest

from store import archive, archive_markdown, documents
from store.archive import Fate
from store.errors import StoreError
from store.firestore.archive import FirestoreArchive
from store.memory import Draft, Source, Space, Turn
from tests.contract.conftest import Backend, Stand, open_firestore, open_sqlite
from tests.engines import FirestoreEmulator
from tests.store.fakes import Clock

MANY = 10_000
MANY_ON_FIRESTORE = 450
"""Three pages; the emulator takes a second for fifty."""
OTHER_PROJECT = "demo-other"


def exported(stand: Stand, owner: str | None = None) -> bytes:
    return b"".join(archive.export(stand.backend.archive, owner or stand.owner))


def imported(
    stand: Stand, content: bytes, batches: int | None = None, owner: str | None = None
) -> dict[str, Fate]:
    """What became of each memory; of the first batches alone, as if the import were interrupted."""
    file, owner, kept = io.BytesIO(content), owner or stand.owner, stand.backend.archive
    census = archive.take_census(file, owner)
    spaces = kept.put_spaces(owner, census.spaces)
    file.seek(0)
    stored = archive.load(stand.engine, kept, owner, file, spaces)
    return dict(each for batch in islice(stored, batches) for each in batch)


@pytest.fixture
def other(backend: Backend, request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Stand]:
    """An empty server on the other engine, of another owner."""
    if isinstance(backend.archive, FirestoreArchive):
        with open_sqlite(tmp_path / "other.db", clock) as opened:
            yield Stand(opened, clock)
        return
    emulator = request.getfixturevalue("running_firestore")
    assert isinstance(emulator, FirestoreEmulator)
    emulator.reset(OTHER_PROJECT)
    with open_firestore(OTHER_PROJECT, clock) as opened:
        yield Stand(opened, clock)


@pytest.fixture
def third(tmp_path: Path, clock: Clock) -> Iterator[Stand]:
    """An empty server on SQLite."""
    with open_sqlite(tmp_path / "third.db", clock) as opened:
        yield Stand(opened, clock)


def fill(stand: Stand) -> None:
    """Everything that can become of a memory."""
    engine, owner, app = stand.engine, stand.owner, stand.app
    second = Space("second-space", owner, "work", stand.clock() + timedelta(microseconds=7))
    stand.backend.archive.put_spaces(owner, [*engine.spaces(owner), second])

    def save(content: str, space: str = stand.space, **members: object) -> str:
        stand.clock.advance(timedelta(microseconds=1))
        return engine.save(owner, space, app, Draft(content, **members)).memory.id  # type: ignore[arg-type]

    whole = Source("user", "A client", "session-1", "https://example.org/a?b=1", None, ("x",), 0.5)
    first = save("Everything is said", topic="people", kind="fact", tags=("a", "b"), source=whole)
    save('Separators\u2028within\u0085and "quotes" \\ \N{WAVING HAND SIGN}\r\n\ttabs')
    save("In another space", second.id, pinned=True, valid_from=datetime(1, 1, 1, tzinfo=UTC))
    save("Until then", valid_until=datetime(9999, 12, 31, tzinfo=UTC), artifact_refs=("file:///x",))
    revised = Source(external_id="doc")
    save("Revision one", source=revised)
    save("Revision two", source=revised)
    save("Revision three", source=revised)
    save("A stranger would change it", source=Source("external", external_id="doc"))
    engine.pin(owner, [stand.space], first, True)
    forgotten = save("Forgotten", source=Source(external_id="gone"))
    engine.forget(owner, [stand.space], forgotten)
    save("Its external_id is free again", source=Source(external_id="gone"))
    kept = documents.DocumentDraft("Notes", "One part.\n\n" * 200, Source(external_id="notes"))
    documents.ingest(engine, owner, stand.space, app, kept)
    gone = documents.ingest(
        engine, owner, stand.space, app, documents.DocumentDraft("Gone", "A text")
    ).document
    stand.backend.memories.archive_document(owner, gone.id, stand.clock())
    for content in ("Hello", "Good day\u2028"):
        turn = Turn(owner, stand.space, "session/1", 0, app, "A client", "user", content, stand.clock())
        stand.backend.memories.add_turn(turn, stand.clock())
    old = save("Superseded")
    stand.backend.memories.deprecate(owner, old, first, stand.clock())


def test_an_import_into_an_empty_server_exports_the_same_bytes(stand: Stand, other: Stand) -> None:
    fill(stand)
    content = exported(stand)
    assert content == exported(stand)
    fates = imported(other, content)
    assert set(fates.values()) == {"created"}
    assert exported(other) == content


def test_what_was_imported_is_found_by_words_at_once_and_by_meaning_after(stand: Stand, other: Stand) -> None:
    fill(stand)
    imported(other, exported(stand))
    space = other.engine.spaces(other.owner)[0].id
    assert other.engine.search(other.owner, space, "everything said")[0].memory.topic == "people"
    assert other.engine.index_pending() == len(json_lines(exported(stand), "memory"))
    assert other.engine.search(other.owner, space, "everything said")[0].memory.topic == "people"
    (proposal,) = (each for each in json_lines(exported(other), "memory") if each["is_proposal"])
    (approved,) = other.backend.memories.approve(other.owner, [str(proposal["id"])], other.clock())
    assert (approved.revision, approved.content) == (4, "A stranger would change it")


def json_lines(content: bytes, kind: str) -> list[dict[str, object]]:
    return [each for each in map(json.loads, content.splitlines()) if each["type"] == kind]


def test_an_import_is_resumed_and_repeated_without_a_second_copy(stand: Stand, other: Stand) -> None:
    for number in range(archive.BATCH * 2):
        stand.engine.save(stand.owner, stand.space, stand.app, Draft(f"Memory {number}"))
    content = exported(stand)
    assert len(imported(other, content, batches=1)) == archive.BATCH
    fates = list(imported(other, content).values())
    assert (fates.count("present"), fates.count("created")) == (archive.BATCH, archive.BATCH)
    assert set(imported(other, content).values()) == {"present"}
    assert exported(other) == content


def test_what_is_here_already_is_never_overwritten(stand: Stand, other: Stand) -> None:
    document = Draft("As it was", source=Source(external_id="doc"))
    saved = stand.engine.save(stand.owner, stand.space, stand.app, document).memory
    content = exported(stand)
    imported(other, content)
    other.engine.pin(other.owner, [saved.space], saved.id, True)
    before = exported(other)
    assert imported(other, content) == {saved.id: "different"}
    assert exported(other) == before


def test_a_server_with_memories_keeps_its_spaces_and_takes_the_rest_by_name(
    stand: Stand, other: Stand
) -> None:
    draft = Draft("The same document", source=Source(external_id="doc"))
    theirs = stand.engine.save(stand.owner, stand.space, stand.app, draft).memory
    free = stand.engine.save(stand.owner, stand.space, stand.app, Draft("Nothing against it")).memory
    other.engine.save(other.owner, other.space, other.app, draft)
    assert imported(other, exported(stand)) == {theirs.id: "conflict", free.id: "created"}
    assert [space.id for space in other.engine.spaces(other.owner)] == [other.space]
    assert other.engine.fetch(other.owner, [other.space], free.id).content == "Nothing against it"


def test_another_owner_s_memories_are_not_in_it(stand: Stand) -> None:
    stranger = stand.backend.owners.create("test", "issuer", "stranger", "b").id
    space = stand.engine.spaces(stranger)[0].id
    stand.engine.save(stranger, space, stand.app, Draft("A stranger's"))
    assert b"stranger" not in exported(stand).lower()


def _signed(lines: list[bytes]) -> bytes:
    """The lines with an end that fits them."""
    kinds = [json.loads(line)["type"] for line in lines]
    end = {
        "type": "end",
        "memories": kinds.count("memory"),
        "spaces": kinds.count("space"),
        "documents": 0,
        "turns": 0,
        "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
    }
    return b"".join(lines) + json.dumps(end).encode() + b"\n"


def _with(**members: object) -> Callable[[list[bytes]], bytes]:
    def changed(lines: list[bytes]) -> bytes:
        memory = json.loads(lines[2]) | members
        return _signed([*lines[:2], json.dumps(memory).encode() + b"\n"])

    return changed


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: b"".join(lines[:-1]),
        lambda lines: b"".join(lines)[:-20],
        lambda lines: b"".join([*lines, lines[0]]),
        lambda lines: b"".join(lines).replace(b"Worth", b"worth"),
        lambda lines: b"".join(lines).replace(b'"version":1', b'"version":2'),
        lambda lines: _signed([lines[0], lines[2]]),
        lambda lines: b"".join([lines[0], b"[]\n"]),
        lambda lines: b"".join([lines[0], b"not json\n", *lines[1:]]),
        _with(content=""),
        _with(content="a\0b"),
        _with(content="\ud800"),
        _with(content="x" * 600_000),
        _with(state="unheard of"),
        _with(revision="many"),
        _with(revision=0),
        _with(created_at="yesterday"),
        _with(created_at="2026-01-01T00:00:00"),
        _with(created_at=None),
        _with(tags=["a", "a"]),
        _with(source={"origin": "nowhere"}),
        _with(revisions=[{"content": "x"}]),
        _with(unknown=1),
        _with(space="elsewhere"),
    ],
)
def test_a_file_that_is_wrong_anywhere_changes_nothing(
    stand: Stand, other: Stand, spoil: Callable[[list[bytes]], bytes]
) -> None:
    stand.engine.save(stand.owner, stand.space, stand.app, Draft("Worth keeping"))
    lines = exported(stand).splitlines(keepends=True)
    before = exported(other)
    with pytest.raises(StoreError) as caught:
        imported(other, spoil(lines))
    assert caught.value.code == "invalid_argument"
    assert exported(other) == before


def test_many_memories_come_back_byte_for_byte(stand: Stand, third: Stand) -> None:
    many = MANY_ON_FIRESTORE if isinstance(stand.backend.archive, FirestoreArchive) else MANY
    stand.embedder = third.embedder = None
    stand.__post_init__()
    third.__post_init__()
    for start in range(0, many, 50):
        stand.clock.advance(timedelta(milliseconds=3))
        drafts = [
            Draft(f"Memory number {number} of many", topic=f"topic {number % 7}", tags=(f"t{number % 5}",))
            for number in range(start, start + 50)
        ]
        stand.engine.import_many(stand.owner, stand.space, stand.app, drafts)
    content = exported(stand)
    assert len(content.splitlines()) == many + 3
    imported(third, content)
    assert exported(third) == content


def test_a_whole_installation_goes_over_to_the_other_engine_and_back(
    stand: Stand, other: Stand, third: Stand
) -> None:
    fill(stand)
    stranger = stand.backend.owners.create("test", "issuer", "stranger", "b").id
    stand.engine.save(stranger, stand.engine.spaces(stranger)[0].id, stand.app, Draft("A stranger's"))
    for owner in (stand.owner, stranger):
        hashes = {hashlib.sha256(content := exported(stand, owner)).hexdigest()}
        for server in (other, third):
            of = server.owner if owner == stand.owner else ""
            of = of or server.backend.owners.create("test", "issuer", "stranger", "b").id
            assert set(imported(server, content, owner=of).values()) == {"created"}
            content = exported(server, of)
            hashes.add(hashlib.sha256(content).hexdigest())
        assert len(hashes) == 1


def test_an_export_is_of_one_moment(stand: Stand) -> None:
    for number in range(3):
        stand.engine.save(stand.owner, stand.space, stand.app, Draft(f"Memory {number}"))
    before = exported(stand)
    lines = archive.export(stand.backend.archive, stand.owner)
    read = [next(lines), next(lines)]
    stand.engine.save(stand.owner, stand.space, stand.app, Draft("Saved meanwhile"))
    assert b"".join([*read, *lines]) == before


def test_the_document_for_people_quotes_what_is_remembered(stand: Stand) -> None:
    fill(stand)
    stand.engine.save(stand.owner, stand.space, stand.app, Draft("# No heading\n\nsecond line", topic="x\ny"))
    document = "".join(archive_markdown.document(stand.backend.archive, stand.owner))
    headings = [line for line in document.split("\n") if line.startswith("#")]
    assert headings[:2] == ["# Memories", "## default"] and "### x y" in headings and "## work" in headings
    assert "> # No heading\n>\n> second line\n" in document
    assert "Forgotten" not in document and "Revision one" not in document
