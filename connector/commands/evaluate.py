"""`vademecum eval`: how well search finds what it should, measured on labelled questions."""

import tempfile
import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import track
from rich.table import Table

from connector.app import utc_now
from connector.commands.output import Json, open_installation, print_json
from connector.tools.tool import describe
from store import evaluation
from store.engine import Engine
from store.errors import StoreError
from store.memory import Draft, Source
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners

app = typer.Typer(help="Measure how well search finds what it should.", no_args_is_help=True)

BATCH = 64
DEPTH = 10


class Labelled(BaseModel):
    """A row of the corpus."""

    type: Literal["memory"]
    id: str
    content: str


class Question(BaseModel):
    """A question with the ids of the memories that answer it."""

    type: Literal["query"]
    query: str
    relevant: list[str]


_ROW: TypeAdapter[Labelled | Question] = TypeAdapter(
    Annotated[Labelled | Question, Field(discriminator="type")]
)


@app.callback()
def _group() -> None:
    """Keeps `eval run` a subcommand while it is the only one."""


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="Labelled JSON lines.", exists=True, dir_okay=False)],
    json: Json = False,
) -> None:
    """Load a labelled set into an empty store of its own, ask its questions, and report the measures.

    Rows of type memory (`id`, `content`) are the corpus, rows of type query (`query`, `relevant`: the ids
    that answer it) the questions. The installation's own memories are neither read nor changed.
    """
    corpus, questions = _read(file)
    embedder = open_installation().embedder
    with tempfile.TemporaryDirectory(prefix="vademecum-eval-") as directory:
        database = Database(Path(directory) / "eval.db", utc_now)
        try:
            engine = Engine(SQLiteMemories(database), embedder, utc_now)
            owner = SQLiteOwners(database).create("eval", "", "eval", "eval").id
            metrics = _measure(engine, owner, corpus, questions)
        finally:
            database.close()
    if json:
        print_json({"metrics": metrics, "queries": len(questions)})
        return
    table = Table("measure", "value", title=f"{file.name}: {len(questions)} questions")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.2f}" if name.endswith("_ms") else f"{value:.4f}")
    Console().print(table)


def _read(file: Path) -> tuple[list[Labelled], list[Question]]:
    """The corpus and the questions.

    Raises:
        StoreError: `invalid_argument`, naming the first line that is wrong, or that there are no questions.
    """
    corpus, questions = [], []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = _ROW.validate_json(line)
        except ValidationError as error:
            raise StoreError("invalid_argument", f"{file} line {number}: {describe(error)}") from None
        if isinstance(row, Labelled):
            corpus.append(row)
        else:
            questions.append(row)
    if not questions:
        raise StoreError("invalid_argument", f"{file} holds no rows of type query")
    return corpus, questions


def _measure(
    engine: Engine, owner: str, corpus: list[Labelled], questions: list[Question]
) -> dict[str, float]:
    console = Console(stderr=True)
    space = engine.spaces(owner)[0].id
    labels: dict[str, str] = {}
    for start in track(
        range(0, len(corpus), BATCH), "Loading", console=console, disable=not console.is_terminal
    ):
        batch = corpus[start : start + BATCH]
        drafts = [Draft(row.content, source=Source(origin="import", external_id=row.id)) for row in batch]
        saved = engine.import_many(owner, space, "eval", drafts)
        labels |= {each.memory.id: row.id for each, row in zip(saved, batch, strict=True)}
    answers = []
    for question in track(questions, "Asking", console=console, disable=not console.is_terminal):
        started = time.perf_counter()
        hits = engine.search(owner, space, question.query, limit=DEPTH)
        elapsed_ms = (time.perf_counter() - started) * 1000
        ranked = [labels[hit.memory.id] for hit in hits]
        answers.append(evaluation.Answer(frozenset(question.relevant), ranked, elapsed_ms))
    return evaluation.metrics(answers)
