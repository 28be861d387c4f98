"""Reading what a view shows: the clause that every such statement carries, and memories in order."""

import json
import sqlite3
from collections.abc import Sequence

from store.memory import Memory, Selection, State, View
from store.sqlite import rows
from store.sqlite.database import to_micros

Parameters = tuple[str | int, ...]


def visible(view: View, states: Sequence[State] | None) -> tuple[str, Parameters]:
    """A condition on `memories`, with its parameters."""
    clauses = ["memories.owner = ?", "memories.archived_at IS NULL"]
    parameters: list[str | int] = [view.owner]
    limits = (("space", view.spaces), ("state", view.states), ("origin", view.origins), ("state", states))
    for column, allowed in limits:
        if allowed is not None:
            clauses.append(f"memories.{column} IN ({','.join('?' * len(allowed))})")
            parameters += sorted(allowed)
    return " AND ".join(clauses), tuple(parameters)


def select(connection: sqlite3.Connection, view: View, selection: Selection) -> list[Memory]:
    """By index, in order of (`created_at`, `id`)."""
    condition, parameters = visible(view, selection.states)
    limits, more = _limits(selection)
    direction = "DESC" if selection.order == "newest" else "ASC"
    found = connection.execute(
        f"""SELECT {rows.SELECT} FROM memories WHERE {condition}{limits}
            ORDER BY memories.created_at {direction}, memories.id {direction} LIMIT ?""",  # noqa: S608
        (*parameters, *more, selection.limit),
    )
    return [rows.from_row(row) for row in found]


def _limits(selection: Selection) -> tuple[str, Parameters]:
    limits = ""
    parameters: list[str | int] = []
    if selection.kinds is not None:
        limits += f" AND memories.kind IN ({','.join('?' * len(selection.kinds))})"
        parameters += selection.kinds
    if selection.ids is not None:
        limits += " AND memories.id IN (SELECT value FROM json_each(?))"
        parameters.append(json.dumps(selection.ids))
    if selection.only_pinned:
        limits += " AND memories.pinned = 1"
    if selection.valid_at is not None:
        moment = to_micros(selection.valid_at)
        limits += " AND coalesce(memories.valid_from, 0) <= ? AND coalesce(memories.valid_until, 1 << 62) > ?"
        parameters += [moment, moment]
    if selection.after is not None:
        created_at, memory_id = selection.after
        comparison = "<" if selection.order == "newest" else ">"
        limits += f" AND (memories.created_at, memories.id) {comparison} (?, ?)"
        parameters += [to_micros(created_at), memory_id]
    return limits, tuple(parameters)
