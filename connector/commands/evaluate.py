"""`vademecum eval`: how well search finds what it should, measured on labelled questions."""

import os
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from connector import labelled
from connector.app import Vademecum, utc_now
from connector.commands import asking
from connector.commands.output import (
    Json,
    OwnerOption,
    chosen_owner,
    open_installation,
    print_json,
    printable,
)
from connector.labelled import Labelled
from store import evaluation, queries, synthetic
from store.engine import Engine
from store.errors import StoreError
from store.evaluation import Answer
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners

app = typer.Typer(help="Measure how well search finds what it should.", no_args_is_help=True)

TOKEN_VARIABLE = "VADEMECUM_TOKEN"  # noqa: S105 - a name
SHOWN = 20

File = Annotated[Path, typer.Argument(help="Labelled JSON lines.", exists=True, dir_okay=False)]
Run = Annotated[Path, typer.Argument(help="Answers, from `eval run --out`.", exists=True, dir_okay=False)]


@app.command("generate")
def generate(
    file: Annotated[Path, typer.Argument(help="Where the set is written.")],
    seed: Annotated[int, typer.Option(help="The same seed makes the same set.")] = 1,
    memories: Annotated[int, typer.Option(min=1, max=100_000)] = 200,
    questions: Annotated[int, typer.Option("--queries", min=1, max=100_000)] = 100,
) -> None:
    """Make a labelled set: where things are kept, in four languages, and questions without an answer."""
    written = labelled.write_rows(file, synthetic.rows(synthetic.Plan(seed, memories, questions)))
    typer.echo(f"{written} rows in {file}")


@app.command("run")
def run(
    file: File,
    url: Annotated[
        str | None, typer.Option(help="Ask a deployed address, with the token in VADEMECUM_TOKEN.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="With --url: store the corpus there, and forget it afterwards.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the answer to each question.")] = None,
    json: Json = False,
) -> None:
    """Ask the questions of a labelled set, and report the measures.

    Rows of type memory (`id`, `content`) are the corpus, rows of type query (`query`, `relevant`: the ids
    that answer it) the questions. Without --url the corpus is loaded into an empty store of its own: the
    installation's memories are neither read nor changed. With --url the ids are those of memories there,
    unless --save stores the corpus first, in the space that the token uses.
    """
    corpus, questions = labelled.read_set(file)
    if url is None:
        answers = _in_own_store(corpus, questions)
    else:
        token = os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            raise StoreError("invalid_argument", f"{TOKEN_VARIABLE} holds no personal access token")
        answers = asking.remotely(url, token, corpus if save else [], questions)
    if out is not None:
        labelled.write_rows(out, map(_row, answers))
    _print_report(file.name, labelled.report(answers), json)


@app.command("import")
def import_cases(
    file: Annotated[Path, typer.Argument(help="Where the set is written.")],
    lookback_hours: Annotated[int, typer.Option(min=1, help="How far back to look.")] = 24,
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Make a labelled set of what was searched and then read, in the last hours.

    Needs VADEMECUM_QUERY_LOG=true while the searches were made. The set holds the owner's memories.
    """
    parts = open_installation()
    if not parts.settings.query_log:
        raise StoreError("invalid_argument", "queries are not kept: set VADEMECUM_QUERY_LOG=true first")
    subject = chosen_owner(parts, owner)
    rows = _cases(parts, subject, timedelta(hours=lookback_hours))
    labelled.write_rows(file, rows)
    counts = {kind: sum(row["type"] == kind for row in rows) for kind in ("memory", "query")}
    if json:
        print_json(counts)
    else:
        typer.echo(f"{counts['query']} questions over {counts['memory']} memories in {file}")


@app.command("compare")
def compare(before: Run, after: Run, json: Json = False) -> None:
    """Compare two runs of the same questions: each measure, and the questions that lost or won."""
    first, second = labelled.read_run(before), labelled.read_run(after)
    old, new = evaluation.metrics(first), evaluation.metrics(second)
    changed = evaluation.changes(first, second)
    if json:
        measures = {name: {"before": old[name], "after": new[name]} for name in new}
        cases = [{"query": each.query, "before": each.before, "after": each.after} for each in changed]
        print_json({"metrics": measures, "changes": cases})
        return
    table = Table("measure", "before", "after", "difference")
    for name in new:
        table.add_row(name, f"{old[name]:.4f}", f"{new[name]:.4f}", f"{new[name] - old[name]:+.4f}")
    console = Console()
    console.print(table)
    cases_table = Table("question", "rank before", "rank after")
    for each in changed[:SHOWN]:
        cases_table.add_row(printable(each.query), _rank(each.before), _rank(each.after))
    console.print(cases_table if changed else "No question fared differently.")


def _in_own_store(corpus: Sequence[Labelled], questions: Sequence[labelled.Question]) -> list[Answer]:
    embedder = open_installation().embedder
    with tempfile.TemporaryDirectory(prefix="vademecum-eval-") as directory:
        database = Database(Path(directory) / "eval.db", utc_now)
        try:
            engine = Engine(SQLiteMemories(database), embedder, utc_now)
            owner = SQLiteOwners(database).create("eval", "", "eval", "eval").id
            return asking.locally(engine, owner, corpus, questions)
        finally:
            database.close()


def _cases(parts: Vademecum, owner: str, lookback: timedelta) -> list[dict[str, Any]]:
    since = parts.now() - lookback
    asked = parts.queries.since(owner, since)
    found = [*queries.evidence(asked, parts.events.since(owner, since))]
    memories = parts.engine.memories
    known = {each: memories.find(owner, each) for _, ids in found for each in ids}
    corpus = {each.id for each in known.values() if each is not None}
    corpus |= {each for query in asked for each in query.found}
    kept = [memory for each in sorted(corpus) if (memory := memories.find(owner, each)) is not None]
    ids = {memory.id for memory in kept}
    rows: list[dict[str, Any]] = [{"type": "memory", "id": each.id, "content": each.content} for each in kept]
    for query, relevant in found:
        if here := [each for each in relevant if each in ids]:
            rows.append({"type": "query", "query": query, "relevant": here})
    return rows


def _row(answer: Answer) -> dict[str, Any]:
    return {
        "query": answer.query,
        "relevant": sorted(answer.relevant),
        "ranked": [*answer.ranked],
        "elapsed_ms": answer.elapsed_ms,
    }


def _rank(reciprocal: float) -> str:
    return f"{1 / reciprocal:.0f}" if reciprocal else "not found"


def _print_report(name: str, report: dict[str, Any], json: bool) -> None:
    if json:
        print_json(report)
        return
    table = Table("measure", "value", title=f"{name}: {report['queries']} questions")
    for measure, value in report["metrics"].items():
        table.add_row(measure, f"{value:.2f}" if measure.endswith("_ms") else f"{value:.4f}")
    Console().print(table)
