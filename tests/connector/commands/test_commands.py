"""The command line does what the pages do, on the same installation."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.app import Vademecum
from tests.connector.commands.conftest import Run


def test_the_passphrase_makes_the_first_owner_and_then_replaces_it(
    owned: Vademecum, run: Run, stdin: Callable[[str], None]
) -> None:
    stdin("another passphrase altogether\n")
    assert run("owner", "passphrase")[0] == 0
    assert len(run.json("owner", "list")) == 1


def test_a_short_passphrase_is_refused_and_changes_nothing(
    parts: Vademecum, run: Run, stdin: Callable[[str], None]
) -> None:
    stdin("short\n")
    code, _, err = run("owner", "passphrase")
    assert code == 1 and "12" in err
    assert not parts.identity.is_set_up()


def test_a_setup_link_is_printed_for_scripts(parts: Vademecum, run: Run) -> None:
    code, out, _ = run("owner", "setup-link")
    assert code == 0
    assert out.startswith("http://127.0.0.1:8788/setup/")


def test_commands_that_need_an_owner_say_how_to_get_one(parts: Vademecum, run: Run) -> None:
    code, out, err = run("search", "anything")
    assert (code, out) == (1, "")
    assert "vademecum owner passphrase" in err


def test_save_and_search(owned: Vademecum, run: Run) -> None:
    saved = run.json("save", "The spare key hangs behind the pantry door", "--topic", "house")
    assert saved["write_status"] == "created"
    found = run.json("search", "spare key")
    assert [match["id"] for match in found["matches"]] == [saved["item"]["id"]]
    assert run.json("search", "spare key", "--topic", "garden") == {"matches": []}


ROWS = (
    {"content": "Ana prefers tea", "topic": "people", "kind": "preference", "tags": ["ana"]},
    {"type": "memory", "id": "7", "content": "The boat is called Ondina", "created_at": "2024-05-01"},
    {"content": "Version one", "external_id": "doc-1"},
    {"type": "query", "content": "left out"},
)


def write_rows(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_an_import_is_repeated_without_a_second_copy(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", *ROWS)
    assert run.json("import", file) == {"created": 3, "updated": 0, "duplicate": 0}
    assert run.json("import", file) == {"created": 0, "updated": 0, "duplicate": 3}
    changed = write_rows(tmp_path / "rows.jsonl", {"content": "Version two", "external_id": "doc-1"})
    assert run.json("import", changed) == {"created": 0, "updated": 1, "duplicate": 0}
    boat = run.json("search", "boat Ondina")["matches"][0]
    assert boat["metadata"]["created_at"] == "2024-05-01T00:00:00.000Z"
    assert boat["metadata"]["source"]["origin"] == "import"


def test_a_bad_line_is_named_and_nothing_is_imported(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"content": "good"}\nnot json\n{"content": "x", "tag": "y"}\n{"topic": "no content"}\n')
    code, _, err = run("import", str(file))
    assert code == 1
    for said in ("line 2: not JSON", "line 3: unknown argument tag", "line 4: content"):
        assert said in err
    assert run.json("search", "good") == {"matches": []}


def test_an_import_that_cannot_be_stored_changes_nothing(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", {"content": "fine"}, {"content": " \u200b "})
    code, _, err = run("import", file)
    assert code == 1 and "line 2" in err
    assert run.json("search", "fine") == {"matches": []}


def test_separators_of_unicode_within_a_text_end_no_line(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"content": "one\u2028memory\u0085 only"}\n', encoding="utf-8")
    assert run.json("import", str(file))["created"] == 1


def test_an_export_is_imported_by_the_command_that_imports_json_lines(
    owned: Vademecum, run: Run, tmp_path: Path
) -> None:
    saved = run.json("save", "The spare key hangs behind the pantry door")["item"]["id"]
    file = tmp_path / "export.ndjson"
    assert run("export", "--output", str(file))[0] == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = run.json("import", str(file))
    assert (again["created"], again["present"], again["conflict_ids"]) == (0, 1, [])
    owned.engine.pin(
        owned.owners.list()[0].id, [owned.engine.spaces(owned.owners.list()[0].id)[0].id], saved, True
    )
    code, out, err = run("import", str(file), "--json")
    assert code == 1 and json.loads(out)["different_ids"] == [saved] and saved in err
    file.write_bytes(file.read_bytes()[:-5])
    code, _, err = run("import", str(file))
    assert code == 1 and "nothing was imported" in err
    assert run("import", str(file), "--space", "default")[0] == 1


def test_an_export_for_people_is_markdown(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    run.json("save", "The spare key hangs behind the pantry door", "--topic", "house")
    assert run("export", "--format", "markdown", "-o", str(tmp_path / "memories.md"))[0] == 0
    assert "### house\n\n> The spare key hangs" in (tmp_path / "memories.md").read_text()
    assert run("export", "-o", str(tmp_path / "nowhere" / "file"))[0] == 1
    assert sorted(path.name for path in tmp_path.glob("*memories*")) == ["memories.md"]


def test_a_token_is_shown_once_and_ends_when_revoked(owned: Vademecum, run: Run) -> None:
    made = run.json("tokens", "add", "--scope", "memory:read", "--name", "nightly job")
    assert made["token"].startswith("vmc_pat_")
    (listed,) = run.json("tokens", "list")
    assert (listed["id"], listed["name"]) == (made["id"], "nightly job")
    assert made["token"] not in json.dumps(listed)
    assert run("tokens", "revoke", made["id"])[0] == 0
    assert run.json("tokens", "list") == []
    assert run("tokens", "revoke", made["id"])[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scope", "memory:everything"),
        ("--scope", "memory:read", "--tool", "no_such_tool"),
        ("--scope", "memory:read", "--state", "nowhere"),
        ("--scope", "memory:read", "--space", "nowhere"),
    ],
)
def test_a_token_for_what_does_not_exist_is_refused(
    owned: Vademecum, run: Run, arguments: tuple[str, ...]
) -> None:
    assert run("tokens", "add", *arguments)[0] == 1
    assert run.json("tokens", "list") == []


def test_a_client_is_registered_by_hand(owned: Vademecum, run: Run) -> None:
    uri = "https://app.example/callback"
    added = run.json("clients", "add", "App", "--redirect-uri", uri, "--auth-method", "client_secret_basic")
    assert added["client_id"] and added["client_secret"]
    code, _, err = run("clients", "add", "App", "--redirect-uri", "javascript:alert(1)")
    assert code == 1 and err
    assert run.json("clients", "list") == []


def test_a_new_signing_key_is_named(owned: Vademecum, run: Run) -> None:
    first = owned.authorization_server.keys.signing_key().kid
    assert run.json("keys", "rotate")["kid"] != first
    assert run.json("keys", "rotate", "--emergency") == {"ended": 0}
