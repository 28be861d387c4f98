"""Edges in SQLite: written with their memory, removed with it, read only where both ends are in the view."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence

from store.entities import TYPES, Entity, Link, edges
from store.memory import Memory, State, View
from store.sqlite.views import Parameters, visible


def relate(connection: sqlite3.Connection, memory: Memory, number: int) -> None:
    """Stores what the memory is connected with now, in the transaction that stores the memory."""
    connection.execute("DELETE FROM edges WHERE memory = ?", (number,))
    connection.executemany(
        "INSERT INTO edges (owner, target, kind, memory, name, weight) VALUES (?, ?, ?, ?, ?, ?)",
        [(memory.owner, edge.target, edge.kind, number, edge.name, edge.weight) for edge in edges(memory)],
    )


def entities(
    connection: sqlite3.Connection,
    view: View,
    states: Sequence[State],
    keys: Collection[str] | None,
    limit: int,
) -> list[Entity]:
    """Counted by memory: one that both mentions and belongs counts once."""
    condition, parameters = visible(view, states)
    among = "" if keys is None else "AND target IN (SELECT value FROM json_each(?))"
    found = connection.execute(
        f"""SELECT target, min(name), group_concat(DISTINCT edges.kind), count(DISTINCT memory) AS said
            FROM edges JOIN memories ON memories.n = edges.memory
            WHERE edges.owner = ? AND edges.kind != 'derived_from' {among} AND {condition}
            GROUP BY target ORDER BY said DESC, target LIMIT ?""",  # noqa: S608
        (view.owner, *(() if keys is None else (json.dumps([*keys]),)), *parameters, limit),
    )
    return [
        Entity(key, name, tuple(sorted({TYPES[kind] for kind in kinds.split(",")})), said)
        for key, name, kinds, said in found
    ]


def links(
    connection: sqlite3.Connection,
    view: View,
    states: Sequence[State],
    keys: Collection[str],
    ids: Collection[str],
    limit: int,
) -> list[Link]:
    """Each edge once, however it is reached."""
    found: dict[Link, None] = {}
    for statement, parameters in _statements(view, states, keys, ids):
        for kind, memory, target, weight in connection.execute(f"{statement} LIMIT ?", (*parameters, limit)):
            found.setdefault(Link(kind, memory, target, weight))
    return [*found][:limit]


_NEWEST = "ORDER BY memories.created_at DESC, memories.id"
_AT_KEYS = "edges.owner = ? AND target IN (SELECT value FROM json_each(?))"
_AT_IDS = "memories.id IN (SELECT value FROM json_each(?))"
_LINEAGE = (
    (
        "'superseded_by', memories.id, other.id",
        "JOIN memories AS other ON other.owner = memories.owner AND other.id = memories.superseded_by",
    ),
    (
        "'superseded_by', other.id, memories.id",
        "JOIN memories AS other ON other.owner = memories.owner AND other.superseded_by = memories.id",
    ),
    (
        "'derived_from', memories.id, other.id",
        "JOIN edges ON edges.memory = memories.n AND edges.kind = 'derived_from' "
        "JOIN memories AS other ON other.owner = memories.owner AND other.id = edges.target",
    ),
    (
        "'derived_from', other.id, memories.id",
        "JOIN edges ON edges.owner = memories.owner AND edges.target = memories.id "
        "AND edges.kind = 'derived_from' JOIN memories AS other ON other.n = edges.memory",
    ),
)
"""Each kind from the memory in hand outwards, and from the other one to it."""


def _statements(
    view: View, states: Sequence[State], keys: Collection[str], ids: Collection[str]
) -> Iterator[tuple[str, Parameters]]:
    condition, parameters = visible(view, states)
    to_entities = f"AND edges.kind != 'derived_from' AND {condition} {_NEWEST}, edges.kind, target"
    columns = "SELECT edges.kind, memories.id, target, weight"
    if ids:
        of_ids = json.dumps([*ids])
        condition_of_other = condition.replace("memories.", "other.")
        for columns_of_lineage, joined in _LINEAGE:
            yield (
                f"""SELECT {columns_of_lineage}, 1 FROM memories {joined}
                    WHERE {_AT_IDS} AND {condition} AND {condition_of_other} {_NEWEST}, other.id""",  # noqa: S608
                (of_ids, *parameters, *parameters),
            )
        joined = "memories JOIN edges ON edges.memory = memories.n"
        yield f"{columns} FROM {joined} WHERE {_AT_IDS} {to_entities}", (of_ids, *parameters)
    if keys:
        joined = "edges JOIN memories ON memories.n = edges.memory"
        yield (
            f"{columns} FROM {joined} WHERE {_AT_KEYS} {to_entities}",
            (view.owner, json.dumps([*keys]), *parameters),
        )
