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
    limits: list[tuple[str, Parameters]] = []
    if selection.kinds is not None:
        limits.append((f"memories.kind IN ({','.join('?' * len(selection.kinds))})", selection.kinds))
    if selection.ids is not None:
        limits.append(("memories.id IN (SELECT value FROM json_each(?))", (json.dumps(selection.ids),)))
    for column, value in (("topic", selection.topic), ("origin", selection.origin)):
        if value is not None:
            limits.append((f"memories.{column} = ?", (value,)))
    for tag in selection.tags:
        has_tag = "EXISTS (SELECT 1 FROM json_each(memories.tags) AS tag WHERE tag.value = ?)"
        limits.append((has_tag, (tag,)))
    if selection.only_pinned:
        limits.append(("memories.pinned = 1", ()))
    limits += _moments(selection)
    clauses = "".join(f" AND {clause}" for clause, _ in limits)
    return clauses, tuple(value for _, values in limits for value in values)


def _moments(selection: Selection) -> list[tuple[str, Parameters]]:
    limits: list[tuple[str, Parameters]] = []
    for comparison, moment in ((">=", selection.created_after), ("<", selection.created_before)):
        if moment is not None:
            limits.append((f"memories.created_at {comparison} ?", (to_micros(moment),)))
    if selection.valid_at is not None:
        at = (to_micros(selection.valid_at),)
        limits.append(("coalesce(memories.valid_from, 0) <= ?", at))
        limits.append(("coalesce(memories.valid_until, 1 << 62) > ?", at))
    if selection.after is not None:
        created_at, memory_id = selection.after
        comparison = "<" if selection.order == "newest" else ">"
        after = f"(memories.created_at, memories.id) {comparison} (?, ?)"
        limits.append((after, (to_micros(created_at), memory_id)))
    return limits
