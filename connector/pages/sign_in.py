"""`/sign-in` and `/sign-out`; where signing in leads is kept on the server, not in a parameter (CWE-601)."""

import logging
import math
from datetime import timedelta
from urllib.parse import urlencode

from starlette.responses import Response

from connector.identity.admission import NotAdmitted
from connector.identity.provider import (
    Browser,
    Identity,
    ProviderUnavailable,
    SignInDelayed,
    SignInRefused,
)
from connector.identity.setup_links import SetupLinkSpent
from connector.pages import cookies
from connector.pages.context import PageContext
from connector.pages.errors import PageError
from connector.pages.forms import first
from connector.pages.page import REQUEST, Visit, redirect
from connector.pages.pending import Pending
from store.owners import Owner

log = logging.getLogger(__name__)

HOME = "/"


def sign_in_path(pending_id: str) -> str:
    """The page that signs in and then goes on with a pending matter."""
    return f"/sign-in?{urlencode({REQUEST: pending_id})}"


def show(visit: Visit) -> Response:
    """The form; also for somebody signed in, who may want another account."""
    pending = find_pending(visit, first(visit.query, REQUEST))
    return _form(visit, pending)


def send(visit: Visit) -> Response:
    """Checks the credential; a new session, and on to what was pending."""
    pending = find_pending(visit, first(visit.form, REQUEST))
    provider = visit.context.provider
    browser = Browser(visit.browser, visit.context.sessions.known_owner(visit.cookie))
    try:
        identity = provider.authenticate(dict(visit.form), browser)
    except SignInRefused as refused:
        log.warning("sign_in.refused", extra={"provider": provider.name})
        return _form(visit, pending, 403, alert=refused.alert)
    except SignInDelayed as delayed:
        log.warning("sign_in.delayed", extra={"provider": provider.name})
        seconds = _seconds(delayed.retry_after)
        return _form(visit, pending, 429, alert="delayed", retry_after=seconds)
    except ProviderUnavailable as away:
        raise unavailable(visit, away) from None
    return enter(visit, identity, pending)


def stale(visit: Visit) -> Response:
    """Somebody signed in by another tab meanwhile: on to what was pending here, and no credential is read."""
    pending = find_pending(visit, first(visit.form, REQUEST))
    if pending is None or pending.setup_link:
        raise PageError(403, "forged")
    return redirect(pending.path)


def unavailable(visit: Visit, away: ProviderUnavailable) -> PageError:
    """The page that asks for patience; what was pending still is."""
    log.warning("sign_in.unavailable", extra={"provider": visit.context.provider.name})
    return PageError(503, "provider_unavailable", headers={"Retry-After": str(_seconds(away.retry_after))})


def refused(visit: Visit, pending: Pending | None) -> Response:
    """The form again, when a provider's own pages brought back nothing that is good."""
    log.warning("sign_in.refused", extra={"provider": visit.context.provider.name})
    return _form(visit, pending, 403, alert="not_accepted")


def enter(visit: Visit, identity: Identity, pending: Pending | None) -> Response:
    """Lets in whoever may enter: a new session, and on to what was pending."""
    context = visit.context
    try:
        owner = _admit(context, identity, pending)
    except NotAdmitted as not_admitted:
        log.warning(
            "sign_in.not_admitted", extra={"provider": identity.provider, "reason": not_admitted.reason}
        )
        return _refusal(visit, not_admitted, pending)
    except SetupLinkSpent:
        raise PageError(410, "setup_link_spent") from None
    if context.provider.is_renewable:
        context.credentials.keep(owner.id, identity)
    response = redirect(pending.path if pending else HOME)
    start_session(visit, response, owner.id, pending)
    return response


def _admit(context: PageContext, identity: Identity, pending: Pending | None) -> Owner:
    if pending is not None and pending.setup_link:
        return context.admission.admit_by_link(identity, context.setup_links, pending.setup_link)
    return context.admission.admit(identity)


def _refusal(visit: Visit, refused: NotAdmitted, pending: Pending | None) -> Response:
    """Names the account, for people have several; the way to another one keeps what was pending."""
    values = {
        "account": refused.identity.label,
        "reason": refused.reason,
        "another_path": sign_in_path(pending.id) if pending else "/sign-in",
    }
    return visit.render("refusal.html", values, 403)


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
    """Ends the session on the server; everywhere: every session of the same owner."""
    everywhere = bool(first(visit.form, "everywhere"))
    response = redirect("/signed-out?everywhere=yes" if everywhere else "/signed-out")
    if everywhere and visit.owner is not None:
        visit.context.sessions.end_all(visit.owner.id)
    visit.context.cookie.write(response, visit.context.sessions.end(visit.cookie))
    log.info("sign_out", extra={"owner": visit.owner.id if visit.owner else None})
    return response


def signed_out(visit: Visit) -> Response:
    """Says so."""
    return visit.render("signed_out.html", {"everywhere": bool(first(visit.query, "everywhere"))})


def _seconds(wait: timedelta) -> int:
    return max(1, math.ceil(wait.total_seconds()))


def find_pending(visit: Visit, pending_id: str) -> Pending | None:
    """What signing in leads to; None when somebody just wants to sign in.

    Raises:
        PageError: 400; expired, decided, or begun in another browser.
    """
    if not pending_id:
        return None
    if visit.is_new_browser:
        # It came here from a page of ours that gave it a cookie.
        raise PageError(400, "no_cookie")
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
