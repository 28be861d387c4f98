"""Spaces and turns in Firestore."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from store.errors import StoreError
from store.firestore.database import Ask, Fields, Tenant, is_id
from store.firestore.stored import hashed, moment
from store.firestore.work import Work, unit
from store.ids import new_id
from store.memory import Space, Turn

TURNS_AT_ONCE = 200


def spaces_of(tenant: Tenant, at: datetime | None = None) -> list[Space]:
    """Oldest first; now, or at a moment of the last hour."""
    found = tenant.ask(Ask("spaces", order=("created_at", "ASCENDING"), at=at))
    live = ((each.id, each.to_dict() or {}) for each in found)
    return [_space(tenant.owner, space, fields) for space, fields in live if fields["deleted_at"] is None]


def add_space(work: Work, tenant: Tenant, name: str) -> Space:
    """A new one.

    Raises:
        StoreError: `conflict` when one has this name.
    """
    space = new_id(12)
    _take_name(work, tenant, space, name)
    fields = {"name": name, "created_at": tenant.database.now(), "deleted_at": None}
    work.put(tenant.document("spaces", space), fields)
    return _space(tenant.owner, space, fields)


def rename_space(work: Work, tenant: Tenant, space: str, name: str) -> Space:
    """Its memories stay where they are."""
    fields = _get(work, tenant, space)
    if fields["name"] != name:
        _take_name(work, tenant, space, name)
        work.delete(tenant.document("space_names", hashed("space", fields["name"])))
        fields = fields | {"name": name}
        work.put(tenant.document("spaces", space), fields)
    return _space(tenant.owner, space, fields)


def close_space(work: Work, tenant: Tenant, space: str) -> None:
    """Ends the space for everybody; what is in it can be deleted at leisure, and again if that is cut short.

    Raises:
        StoreError: `not_found`; `conflict` for the only one.
    """
    known = work.get(tenant.document("spaces", space)) if is_id(space) else None
    if known is not None and known["deleted_at"] is not None:
        return
    # Two that close different spaces at once must not both find another one left.
    work.hold(tenant.reference)
    fields = _get(work, tenant, space)
    if all(each.id == space for each in spaces_of(tenant)):
        raise StoreError("conflict", "the only space cannot be deleted")
    work.delete(tenant.document("space_names", hashed("space", fields["name"])))
    work.put(tenant.document("spaces", space), fields | {"deleted_at": tenant.database.now()})


def drop_space(work: Work, tenant: Tenant, space: str) -> None:
    """The last of a space that is closed and empty."""
    work.delete(tenant.document("spaces", space))


def add_turn(tenant: Tenant, turn: Turn, since: datetime) -> tuple[Turn, bool]:
    """Numbered by the session's own document, which also knows the last turn."""
    session = _session(tenant, turn.space, turn.session)

    def add(work: Work) -> tuple[Turn, bool]:
        _get(work, tenant, turn.space)
        known = work.get(tenant.document("episodes", session))
        said = _said(turn)
        if known is not None and known["last"] == said and known["at"] > since:
            return replace(turn, number=known["number"], at=moment(known["at"]) or turn.at), False
        number = 1 if known is None else known["number"] + 1
        added = replace(turn, number=number)
        put_turn(work, tenant, added)
        return added, True

    return unit(tenant.database, add)


def put_turn(work: Work, tenant: Tenant, turn: Turn) -> None:
    """Stages the turn under its number."""
    session = _session(tenant, turn.space, turn.session)
    reference = tenant.document("episodes", session)
    known = work.get(reference)
    if known is None or known["number"] < turn.number:
        of_last = {"number": turn.number, "last": _said(turn), "at": turn.at}
        work.put(reference, {"space": turn.space, "session": turn.session, **of_last})
    fields = {"app": turn.app, "client_name": turn.client_name, "role": turn.role, "at": turn.at}
    work.put_unread(tenant.document("turns", f"{session}.{turn.number}"), fields | {"content": turn.content})


def get_turn(work: Work, tenant: Tenant, turn: Turn) -> Turn | None:
    """What is kept under the session and the number of this turn."""
    name = f"{_session(tenant, turn.space, turn.session)}.{turn.number}"
    found = work.get(tenant.document("turns", name))
    return None if found is None else _turn(tenant, turn.space, turn.session, turn.number, found)


def all_turns(tenant: Tenant, space: str, at: datetime) -> Iterator[Turn]:
    """Of every session of the space, by (`session`, `number`), at a moment of the last hour."""
    episodes = tenant.ask(Ask("episodes", (("space", "==", space),), at=at))
    for episode in sorted(episodes, key=lambda each: str(each.get("session"))):
        numbers = range(1, episode.get("number") + 1)
        for start in range(0, len(numbers), TURNS_AT_ONCE):
            names = {f"{episode.id}.{number}": number for number in numbers[start : start + TURNS_AT_ONCE]}
            found = tenant.database.get_all((tenant.document("turns", each) for each in names), at)
            for each in sorted(found, key=lambda each: names[each.id]):
                yield _turn(tenant, space, episode.get("session"), names[each.id], each.to_dict() or {})


def turns_of(tenant: Tenant, space: str, session: str, after: int, limit: int) -> list[Turn]:
    """By their ids, which are numbers."""
    name = _session(tenant, space, session)
    numbers = {f"{name}.{number}": number for number in range(after + 1, after + limit + 1)}
    known = tenant.database.get(tenant.document("episodes", name)).to_dict() or {"number": 0}
    there = [turn for turn, number in numbers.items() if number <= known["number"]]
    found = tenant.database.get_all(tenant.document("turns", each) for each in there)
    turns = [_turn(tenant, space, session, numbers[each.id], each.to_dict() or {}) for each in found]
    return sorted(turns, key=lambda each: each.number)


def delete_turns(tenant: Tenant, space: str) -> None:
    """Of every session of the space; a session goes after its turns."""
    for session in tenant.ask(Ask("episodes", (("space", "==", space),))):

        def delete(work: Work, name: str = session.id, last: int = session.get("number")) -> None:
            for number in range(1, last + 1):
                work.remove(tenant.document("turns", f"{name}.{number}"))
            work.remove(tenant.document("episodes", name))

        unit(tenant.database, delete)


def _get(work: Work, tenant: Tenant, space: str) -> Fields:
    fields = work.get(tenant.document("spaces", space)) if is_id(space) else None
    if fields is None or fields["deleted_at"] is not None:
        raise StoreError("not_found", "no such space")
    return fields


def _take_name(work: Work, tenant: Tenant, space: str, name: str) -> None:
    reference = tenant.document("space_names", hashed("space", name))
    if work.get(reference) is not None:
        raise StoreError("conflict", f"there is a space called {name} already")
    work.put(reference, {"space": space})


def _session(tenant: Tenant, space: str, session: str) -> str:
    return hashed("session", space, session)


def _said(turn: Turn) -> list[str]:
    """By which a turn that repeats the last one is known."""
    return [turn.app, turn.role, hashed("turn", turn.content)]


def _turn(tenant: Tenant, space: str, session: str, number: int, fields: Fields) -> Turn:
    turn = Turn(tenant.owner, space, session, number, **fields)
    return replace(turn, at=moment(turn.at) or turn.at)


def _space(owner: str, space: str, fields: Fields) -> Space:
    return Space(space, owner, fields["name"], moment(fields["created_at"]) or fields["created_at"])
