"""Labelled sets and runs of them, as files of JSON lines."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from connector.tools.tool import describe
from store.errors import StoreError
from store.evaluation import Answer, metrics


class Labelled(BaseModel):
    """A row of the corpus."""

    type: Literal["memory"]
    id: str
    content: str


class Question(BaseModel):
    """A question with the ids of the memories that answer it; none when nothing does."""

    type: Literal["query"]
    query: str
    relevant: list[str]


class Asked(BaseModel):
    """A question of a run, with what was found, best first."""

    query: str
    relevant: list[str]
    ranked: list[str]
    elapsed_ms: float

    def answer(self) -> Answer:
        """As the measures take it."""
        return Answer(frozenset(self.relevant), self.ranked, self.elapsed_ms, self.query)


_ROW: TypeAdapter[Labelled | Question] = TypeAdapter(
    Annotated[Labelled | Question, Field(discriminator="type")]
)


def read_set(file: Path) -> tuple[list[Labelled], list[Question]]:
    """The corpus and the questions.

    Raises:
        StoreError: `invalid_argument`, naming the first line that is wrong, or that there are no questions.
    """
    rows = [_parse(_ROW.validate_json, file, number, line) for number, line in _lines(file)]
    corpus = [row for row in rows if isinstance(row, Labelled)]
    questions = [row for row in rows if isinstance(row, Question)]
    if not questions:
        raise StoreError("invalid_argument", f"{file} holds no rows of type query")
    return corpus, questions


def read_run(file: Path) -> list[Answer]:
    """The answers of a run that was written by `write_rows`.

    Raises:
        StoreError: `invalid_argument`, naming the first line that is wrong.
    """
    answers = [
        _parse(Asked.model_validate_json, file, number, line).answer() for number, line in _lines(file)
    ]
    if not answers:
        raise StoreError("invalid_argument", f"{file} holds no answers")
    return answers


def write_rows(file: Path, rows: Iterable[Any]) -> int:
    """Writes JSON lines in place of what was there, all or nothing; returns how many.

    Raises:
        StoreError: `invalid_argument` when the file cannot be written.
    """
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    draft = file.with_name(file.name + ".part")
    try:
        draft.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise StoreError("invalid_argument", f"{file} cannot be written: {error.strerror}") from error
    return len(lines)


def report(answers: Sequence[Answer]) -> dict[str, Any]:
    """What `eval run --json` prints."""
    return {"metrics": metrics(answers), "queries": len(answers)}


def _lines(file: Path) -> list[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError("invalid_argument", f"{file} cannot be read: {error}") from error
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _parse(parse: Any, file: Path, number: int, line: str) -> Any:
    try:
        return parse(line)
    except ValidationError as error:
        raise StoreError("invalid_argument", f"{file} line {number}: {describe(error)}") from None
