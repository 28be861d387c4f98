"""Measuring search from the command line."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.app import Vademecum
from store.events import Event
from store.memory import Draft
from store.queries import AskedQuery
from tests.connector.commands.conftest import Run
from tests.processes import Server, running

SET: list[dict[str, Any]] = [
    {"type": "memory", "id": "a", "content": "The lighthouse keeper paints seagulls"},
    {"type": "memory", "id": "b", "content": "Tomatoes grow on the south wall"},
    {"type": "query", "query": "who paints seagulls", "relevant": ["a"]},
    {"type": "query", "query": "where do tomatoes grow", "relevant": ["b"]},
    {"type": "query", "query": "zxqv blorp", "relevant": []},
]


@pytest.fixture
def labelled(tmp_path: Path) -> str:
    return write(tmp_path / "set.jsonl", SET)


def write(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def test_a_set_is_measured_in_a_store_of_its_own(owned: Vademecum, run: Run, labelled: str) -> None:
    report = run.json("eval", "run", labelled)
    metrics = report["metrics"]
    assert {"recall@1", "recall@5", "recall@10", "mrr", "ndcg@10", "p50_ms", "p95_ms"} <= set(metrics)
    assert (metrics["recall@1"], metrics["hit@1"], metrics["mrr"]) == (1.0, 1.0, 1.0)
    assert (metrics["empty_rate"], metrics["false_answer_rate"], report["queries"]) == (0.0, 0.0, 3)
    assert run.json("search", "seagulls") == {"matches": []}
    assert "recall@10" in run("eval", "run", labelled)[1]


def test_the_same_seed_makes_the_same_set_and_it_can_be_run(
    owned: Vademecum, run: Run, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("one.jsonl", "two.jsonl", "three.jsonl")]
    for file, seed in zip(files, ("7", "7", "8"), strict=True):
        assert (
            run("eval", "generate", str(file), "--seed", seed, "--memories", "50", "--queries", "40")[0] == 0
        )
    one, two, three = (file.read_text() for file in files)
    assert one == two != three
    rows = [json.loads(line) for line in one.splitlines()]
    assert [row["type"] for row in rows] == ["memory"] * 50 + ["query"] * 40
    assert any(not row["relevant"] for row in rows if row["type"] == "query")
    ids = {row["id"] for row in rows if row["type"] == "memory"}
    assert all(set(row["relevant"]) <= ids for row in rows if row["type"] == "query")
    assert run.json("eval", "run", str(files[0]))["metrics"]["recall@10"] > 0.2


def test_two_runs_are_compared_question_by_question(
    owned: Vademecum, run: Run, labelled: str, tmp_path: Path
) -> None:
    before, after = str(tmp_path / "before.jsonl"), tmp_path / "after.jsonl"
    run.json("eval", "run", labelled, "--out", before)
    rows = [json.loads(line) for line in Path(before).read_text().splitlines()]
    rows[0]["ranked"] = ["b", "a"]
    compared = run.json("eval", "compare", before, write(after, rows))
    assert compared["metrics"]["mrr"] == {"before": 1.0, "after": 0.75}
    assert compared["changes"] == [{"query": "who paints seagulls", "before": 1.0, "after": 0.5}]
    assert "who paints seagulls" in run("eval", "compare", before, str(after))[1]
    assert run("eval", "compare", before, before)[1].rstrip().endswith("No question fared differently.")


@pytest.mark.parametrize("line", ['{"type":"query"}', "not json", '{"type":"x"}'])
def test_a_bad_line_is_named(owned: Vademecum, run: Run, tmp_path: Path, line: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(json.dumps(SET[0]) + "\n" + line + "\n")
    for command in (["run", str(file)], ["compare", str(file), str(file)]):
        code, _, err = run("eval", *command)
        assert code == 1 and f"{file} line " in err


def test_what_was_searched_and_then_read_becomes_a_set(owned: Vademecum, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    refused = run("eval", "import", str(file))
    assert refused[0] == 1 and "VADEMECUM_QUERY_LOG" in refused[2]
    object.__setattr__(owned, "settings", owned.settings.model_copy(update={"query_log": True}))
    owner = owned.owners.list()[0].id
    space = owned.engine.spaces(owner)[0].id
    read, seen = (
        owned.engine.save(owner, space, "app", Draft(content)).memory.id for content in ("read", "only seen")
    )
    now = owned.now()

    def event(minutes: float, name: str, memory: str, app: str = "app") -> Event:
        at = now - timedelta(minutes=minutes)
        return Event(at, owner, app, "App", name, "ok", 1.0, (memory,))

    owned.queries.append(
        [
            AskedQuery(now - timedelta(minutes=30), owner, "app", "evidence", (seen, read)),
            AskedQuery(now - timedelta(minutes=30), owner, "other", "read by another app", (seen, read)),
            AskedQuery(now - timedelta(hours=30), owner, "app", "too long ago", (seen, read)),
        ]
    )
    owned.events.append(
        [
            event(29, "fetch_context", read),
            event(29, "pin_context", seen),
            event(15, "fetch_context", seen),
            event(29, "fetch_context", "unknown"),
            event(60 * 30 - 1, "fetch_context", read),
        ]
    )
    assert run.json("eval", "import", str(file), "--lookback-hours", "2") == {"memory": 2, "query": 1}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row for row in rows if row["type"] == "query"] == [
        {"type": "query", "query": "evidence", "relevant": [read]}
    ]
    assert {row["content"] for row in rows if row["type"] == "memory"} == {"read", "only seen"}


def test_a_deployed_server_is_measured_and_left_as_it_was(tmp_path: Path, labelled: str) -> None:
    with running(Server(tmp_path / "state")) as server:
        token = server.run("tokens", "add", "--scope", "memory:read", "--scope", "memory:write").strip()
        asking = Server(tmp_path / "elsewhere", {"VADEMECUM_TOKEN": token})
        asked = asking.run("eval", "run", labelled, "--url", server.url, "--save", "--json")
        assert json.loads(asked)["metrics"]["recall@1"] == 1.0
        assert json.loads(server.run("search", "seagulls", "--json")) == {"matches": []}
        unlabelled = asking.run("eval", "run", labelled, "--url", f"{server.url}/mcp", "--json")
        assert json.loads(unlabelled)["metrics"]["empty_rate"] == 1.0
        for environment in ({}, {"VADEMECUM_TOKEN": "vmc_pat_wrong"}):
            with pytest.raises(AssertionError, match="token"):
                Server(tmp_path / "elsewhere", environment).run("eval", "run", labelled, "--url", server.url)
