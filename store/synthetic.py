"""A labelled set that is made, not collected: the same for the same seed, and free of anybody's data.

Memories say where things are, in four languages; distractors speak of the same things but not of where they
are; questions ask in the same or another language, and some have no answer.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNANSWERABLE_SHARE = 0.1
DISTRACTOR_SHARE = 0.4

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to make; sizes are what is made exactly."""

    seed: int
    memories: int
    queries: int


def rows(plan: Plan) -> Iterator[Row]:
    """Rows of type `memory`, then rows of type `query`, as `vademecum eval run` reads them."""
    words = json.loads(Path(__file__).with_name("synthetic.json").read_text(encoding="utf-8"))
    source = random.Random(plan.seed)  # noqa: S311 - reproducible on purpose
    languages = sorted(words["things"])
    told: list[tuple[str, str, int]] = []
    for number in range(plan.memories):
        language = source.choice(languages)
        thing = source.randrange(len(words["things"][language]))
        is_distractor = bool(told) and source.random() < DISTRACTOR_SHARE
        template = source.choice(words["distractors" if is_distractor else "memories"][language])
        place = source.choice(words["places"][language])
        owner = f"{_name(source)}: " if plan.memories > len(words["things"][language]) else ""
        content = owner + template.format(thing=words["things"][language][thing], place=place)
        identity = f"m{number}"
        if not is_distractor:
            told.append((identity, owner, thing))
        yield {"type": "memory", "id": identity, "content": content, "language": language}
    for _ in range(plan.queries):
        yield _query(source, words, languages, told)


def _query(source: random.Random, words: Any, languages: list[str], told: list[tuple[str, str, int]]) -> Row:
    if not told or source.random() < UNANSWERABLE_SHARE:
        return {"type": "query", "query": source.choice(words["unanswerable"]), "relevant": []}
    _, owner, thing = source.choice(told)
    language = source.choice(languages)
    asked = source.choice(words["queries"][language]).format(thing=words["things"][language][thing])
    relevant = [identity for identity, whose, what in told if (whose, what) == (owner, thing)]
    return {"type": "query", "query": owner + asked, "relevant": relevant, "language": language}


def _name(source: random.Random) -> str:
    """A household's name: what tells one spare key from another in a large set."""
    return (
        source.choice("BDFGKLMNPRSTV")
        + source.choice("aeiou")
        + source.choice("lmnrst")
        + source.choice(("ers", "ova", "inho", "ez", "berg", "idis", "moto", "ani"))
    )
