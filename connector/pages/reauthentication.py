"""Before what cannot be undone or taken back, tokens, export and deletion, the owner signs in again.

A session is as old as its sign-in: each sign-in starts a new one.
"""

from datetime import timedelta

from starlette.responses import Response

from connector.pages.page import Visit, redirect
from connector.pages.sign_in import sign_in_path

RECENT = timedelta(minutes=5)


def demand_recent_sign_in(visit: Visit, path: str) -> Response | None:
    """The way to the sign-in page, for who has not signed in within five minutes; None for who has.

    Args:
        visit: to a page that shows or does such a thing; both its GET and its POST must ask.
        path: one of our own paths, where signing in leads back to.
    """
    session = visit.session
    if session is not None and visit.owner is not None:
        age = visit.context.now() - session.created_at
        if timedelta(0) <= age <= RECENT:
            return None
    return redirect(sign_in_path(visit.context.pending.open_path(visit.browser, path).id))
