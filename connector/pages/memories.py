"""`/memories/{id}`: one memory, for its owner. Links in assistants' answers lead here."""

from urllib.parse import quote

from starlette.responses import Response

from connector.pages.errors import PageError
from connector.pages.page import Visit, redirect
from connector.pages.sign_in import sign_in_path
from store.errors import StoreError

MAX_ID_CHARACTERS = 128


def show(visit: Visit) -> Response:
    """The memory; another owner's reads like one that does not exist."""
    memory_id = visit.path["memory_id"]
    if len(memory_id) > MAX_ID_CHARACTERS or not memory_id.isprintable():
        raise PageError(404, "not_found")
    if visit.owner is None:
        path = f"/memories/{quote(memory_id, safe='')}"
        return redirect(sign_in_path(visit.context.pending.open_path(visit.browser, path).id))
    spaces = {space.id: space.name for space in visit.context.engine.spaces(visit.owner.id)}
    try:
        memory = visit.context.engine.fetch(visit.owner.id, list(spaces), memory_id)
    except StoreError as error:
        if error.code != "not_found":
            raise
        raise PageError(404, "not_found") from None
    return visit.render("memory.html", {"memory": memory, "space_name": spaces.get(memory.space, "")})
