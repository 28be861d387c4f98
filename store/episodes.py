"""Episodes: turns of a conversation that a client passes on purpose, kept in order.

Off until the owner turns them on for an app; the turns are kept as they are and take no part in search.
"""

from dataclasses import dataclass

from store.characters import is_visible, well_formed
from store.draft import MAX_CONTENT_BYTES
from store.engine import DUPLICATE_WINDOW, Engine
from store.errors import StoreError
from store.memory import Role, Turn

MAX_SESSION_CHARACTERS = 200
PAGE = 50


@dataclass(frozen=True)
class Page:
    """Some turns, oldest first, and the cursor of those after them; None when there are none."""

    turns: tuple[Turn, ...]
    next_cursor: str | None


def store(
    engine: Engine, owner: str, space: str, app: str, client_name: str, session: str, role: Role, content: str
) -> tuple[Turn, bool]:
    """The turn, and whether it is new: the last turn of the session again within 15 minutes is not.

    Raises:
        StoreError: `invalid_argument`, `too_large`, or `not_found` for the space.
    """
    session, content = _session(session), well_formed(content)
    if "\0" in content:
        raise StoreError("invalid_argument", "content contains NUL")
    if not is_visible(content):
        raise StoreError("invalid_argument", "content is empty, or nothing of it is visible")
    if len(content.encode()) > MAX_CONTENT_BYTES:
        raise StoreError("too_large", f"content is larger than {MAX_CONTENT_BYTES} bytes of UTF-8")
    now = engine.now()
    turn = Turn(owner, space, session, 0, app, well_formed(client_name), role, content, now)
    return engine.memories.add_turn(turn, now - DUPLICATE_WINDOW)


def page(engine: Engine, owner: str, space: str, session: str, cursor: str | None) -> Page:
    """The page that the cursor leads to, or the first; a session without turns has an empty one.

    Raises:
        StoreError: `invalid_argument` for a cursor of another session.
    """
    session = _session(session)
    bound = ["turns", owner, space, session]
    after = 0 if cursor is None else int(engine.cursors.open(bound, cursor)[0])
    found = engine.memories.turns(owner, space, session, after, PAGE + 1)
    shown = tuple(found[:PAGE])
    more = len(found) > PAGE
    return Page(shown, engine.cursors.seal(bound, [str(shown[-1].number)]) if more else None)


def _session(session: str) -> str:
    session = well_formed(session)
    if "\0" in session or not is_visible(session) or len(session) > MAX_SESSION_CHARACTERS:
        raise StoreError(
            "invalid_argument", f"session_id is a visible text of at most {MAX_SESSION_CHARACTERS} characters"
        )
    return session
