"""Before what cannot be undone or taken back, tokens, export and deletion, the owner signs in again."""

from starlette.responses import Response

from connector.pages.page import Visit, redirect
from connector.pages.sign_in import sign_in_path


def find_fresh_owner(visit: Visit) -> str | None:
    """The id of whoever has signed in within the last five minutes; both GET and POST of a page must ask."""
    if visit.session is None or not visit.session.is_fresh(visit.context.now()):
        return None
    return visit.session.owner


def over_sign_in(visit: Visit, path: str) -> Response:
    """The way to the sign-in page and from there to `path`, one of our own."""
    return redirect(sign_in_path(visit.context.pending.open_path(visit.browser, path).id))
