"""`/login/oidc` and its callback: to the issuer's own sign-in page, and back in the same browser."""

import logging
from collections.abc import Callable

from starlette.responses import Response

from connector.identity.oidc import OidcProvider
from connector.identity.provider import ProviderUnavailable, SignInRefused
from connector.pages import sign_in
from connector.pages.errors import PageError
from connector.pages.forms import first
from connector.pages.page import REQUEST, Visit, redirect

log = logging.getLogger(__name__)


def pages(provider: OidcProvider) -> tuple[Callable[[Visit], Response], Callable[[Visit], Response]]:
    """What the sign-in page's button does, and the page that the issuer leads back to."""

    def begin(visit: Visit) -> Response:
        pending = sign_in.find_pending(visit, first(visit.form, REQUEST))
        try:
            return redirect(provider.begin(visit.browser, pending.id if pending else ""))
        except ProviderUnavailable as away:
            raise sign_in.unavailable(visit, away) from None

    def come_back(visit: Visit) -> Response:
        login = provider.find_login(first(visit.query, "state"))
        # Begun elsewhere: an attacker's account, or his code, is not let into this browser (RFC 9700 §4.7).
        if login is None or not visit.is_same_browser(login.browser):
            raise PageError(400, "no_cookie" if visit.is_new_browser else "expired")
        pending = sign_in.find_pending(visit, login.pending_id)
        try:
            identity = provider.finish(login, dict(visit.query))
        except SignInRefused:
            return sign_in.refused(visit, pending)
        except ProviderUnavailable as away:
            raise sign_in.unavailable(visit, away) from None
        return sign_in.enter(visit, identity, pending)

    return begin, come_back
