"""`/account/delete` and `/account/export`: leaving, with everything taken along first.

Deleting asks for a sign-in of the last five minutes and for this server's name, typed. It ends the account
before it answers; what the account holds is deleted after the answer, and after a restart if need be.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from connector.pages.forms import first
from connector.pages.page import Visit
from connector.pages.reauthentication import find_fresh_owner, over_sign_in
from connector.tools.dates import rfc3339
from store.engine import Engine
from store.memory import Memory, Selection, View

log = logging.getLogger(__name__)

DELETE = "/account/delete"
EXPORT = "/account/export"
CONFIRMATION = "confirmation"
EXPORTED_AT_ONCE = 200


def show_deletion(visit: Visit) -> Response:
    """What would go, what would stay elsewhere, and the form."""
    owner = find_fresh_owner(visit)
    return over_sign_in(visit, DELETE) if owner is None else _deletion_form(visit, owner)


def send_deletion(visit: Visit) -> Response:
    """Ends the account, if the confirmation is right."""
    owner = find_fresh_owner(visit)
    if owner is None:
        return over_sign_in(visit, DELETE)
    if first(visit.form, CONFIRMATION).strip().casefold() != _server(visit):
        return _deletion_form(visit, owner, 400, alert="confirmation")
    deletion = visit.context.deletion
    deletion.close(owner)
    gone = replace(visit, owner=None, session=None)
    response = gone.render("account_deleted.html", {"backups": deletion.backups()})
    visit.context.cookie.write(response, visit.context.sessions.end(visit.cookie))
    response.background = BackgroundTask(deletion.erase, owner)
    return response


def export(visit: Visit) -> Response:
    """Every memory that is not forgotten, one JSON object a line."""
    owner = find_fresh_owner(visit)
    if owner is None:
        return over_sign_in(visit, EXPORT)
    log.info("account.exported", extra={"owner": owner})
    return StreamingResponse(
        _lines(visit.context.engine, owner),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": 'attachment; filename="memories.jsonl"'},
    )


def _deletion_form(visit: Visit, owner: str, status: int = 200, alert: str = "") -> Response:
    deletion = visit.context.deletion
    values = {
        "preview": deletion.preview(owner),
        "backups": deletion.backups(),
        "server": _server(visit),
        "alert": alert,
    }
    return visit.render("account_delete.html", values, status)


def _server(visit: Visit) -> str:
    """Host and port, as every page shows them."""
    return visit.context.public_url.partition("://")[2]


def _lines(engine: Engine, owner: str) -> Iterator[str]:
    names = {space.id: space.name for space in engine.spaces(owner)}
    view = View(owner, tuple(names))
    selection = Selection(states=None, order="oldest", limit=EXPORTED_AT_ONCE)
    while found := engine.memories.select(view, selection):
        for memory in found:
            yield json.dumps(_exported(memory, names), ensure_ascii=False) + "\n"
        selection = replace(selection, after=(found[-1].created_at, found[-1].id))


def _exported(memory: Memory, names: dict[str, str]) -> dict[str, Any]:
    return {
        "content": memory.content,
        "topic": memory.topic,
        "kind": memory.kind,
        "state": memory.state,
        "tags": list(memory.tags),
        "pinned": memory.pinned,
        "space": names.get(memory.space, ""),
        "created_at": rfc3339(memory.created_at),
        "updated_at": rfc3339(memory.updated_at),
        "client_name": memory.source.client_name,
        "source_url": memory.source.url,
        "external_id": memory.source.external_id,
        "id": memory.id,
    }
