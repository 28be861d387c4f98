"""`/sign-in` and `/sign-out`; where signing in leads is kept on the server, not in a parameter (CWE-601)."""

import logging
import math
from urllib.parse import urlencode

from starlette.responses import Response

from connector.identity.provider import Browser, Identity, SignInDelayed, SignInRefused
from connector.pages import cookies
from connector.pages.errors import PageError
from connector.pages.forms import first
from connector.pages.page import REQUEST, Visit, redirect
from connector.pages.pending import Pending

log = logging.getLogger(__name__)

HOME = "/"


def sign_in_path(pending_id: str) -> str:
    """The page that signs in and then goes on with a pending matter."""
    return f"/sign-in?{urlencode({REQUEST: pending_id})}"


def show(visit: Visit) -> Response:
    """The form; also for somebody signed in, who may want another account."""
    pending = _pending(visit, first(visit.query, REQUEST))
    return _form(visit, pending)


def send(visit: Visit) -> Response:
    """Checks the credential; a new session, and on to what was pending."""
    pending = _pending(visit, first(visit.form, REQUEST))
    provider = visit.context.provider
    browser = Browser(visit.browser, visit.context.sessions.known_owner(visit.cookie))
    try:
        identity = provider.authenticate(dict(visit.form), browser)
    except SignInRefused:
        log.warning("sign_in.refused", extra={"provider": provider.name})
        return _form(visit, pending, 403, alert="refused")
    except SignInDelayed as delayed:
        log.warning("sign_in.delayed", extra={"provider": provider.name})
        seconds = max(1, math.ceil(delayed.retry_after.total_seconds()))
        return _form(visit, pending, 429, alert="delayed", retry_after=seconds)
    return _enter(visit, identity, pending)


def _enter(visit: Visit, identity: Identity, pending: Pending | None) -> Response:
    context = visit.context
    owner = context.owners.find(identity.provider, identity.issuer, identity.subject)
    if owner is None:
        log.warning("sign_in.not_an_owner", extra={"provider": identity.provider})
        raise PageError(403, "not_yours")
    response = redirect(pending.path if pending else HOME)
    start_session(visit, response, owner.id, pending)
    return response


def start_session(visit: Visit, response: Response, owner: str, pending: Pending | None = None) -> None:
    """Signs this browser in with a cookie that nobody has seen before, and takes the pending matter along."""
    context = visit.context
    new = context.sessions.start(owner, visit.cookie)
    context.cookie.write(response, new)
    log.info("sign_in.succeeded", extra={"owner": owner})
    if pending is None:
        return
    if pending.request is None:
        context.pending.take(pending.id)
    else:
        context.pending.hand_over(pending, cookies.digest(new))


def sign_out(visit: Visit) -> Response:
    """Ends the session on the server."""
    response = redirect("/signed-out")
    visit.context.cookie.write(response, visit.context.sessions.end(visit.cookie))
    log.info("sign_out", extra={"owner": visit.owner.id if visit.owner else None})
    return response


def signed_out(visit: Visit) -> Response:
    """Says so."""
    return visit.render("signed_out.html")


def _pending(visit: Visit, pending_id: str) -> Pending | None:
    """What signing in leads to; None when somebody just wants to sign in.

    Raises:
        PageError: 400; expired, decided, or begun in another browser.
    """
    if not pending_id:
        return None
    pending = visit.context.pending.find(pending_id)
    if pending is None or not visit.is_same_browser(pending.browser):
        raise PageError(400, "expired")
    return pending


def _form(
    visit: Visit, pending: Pending | None, status: int = 200, alert: str = "", retry_after: int = 0
) -> Response:
    provider = visit.context.provider
    values = {
        "pending": pending,
        "alert": alert,
        "retry_after": retry_after,
        "is_set_up": provider.is_set_up(),
        "provider_template": provider.form_template,
        **provider.form_fields(),
    }
    headers = {"Retry-After": str(retry_after)} if retry_after else None
    return visit.render("sign_in.html", values, status, headers)
