"""`/setup/{token}`: the one-time link that makes its reader the owner, or gives an owner a new passphrase."""

import hmac
import logging
from collections.abc import Callable

from starlette.responses import Response

from connector.identity.passphrase import MAX_CHARACTERS, MIN_CHARACTERS, PassphraseProvider
from connector.identity.setup import is_setup_link, redeem_setup_link
from connector.identity.setup_links import SetupLinkSpent
from connector.pages.errors import PageError
from connector.pages.forms import first
from connector.pages.page import Visit, redirect
from connector.pages.sign_in import HOME, start_session
from store.errors import StoreError

log = logging.getLogger(__name__)


def pages(provider: PassphraseProvider) -> tuple[Callable[[Visit], Response], Callable[[Visit], Response]]:
    """The page and what its form does."""

    def show(visit: Visit) -> Response:
        _check_link(provider, visit)
        return _form(visit)

    def send(visit: Visit) -> Response:
        _check_link(provider, visit)
        passphrase, again = first(visit.form, "passphrase"), first(visit.form, "passphrase_again")
        if not hmac.compare_digest(passphrase.encode(), again.encode()):
            return _form(visit, 400, "differ")
        try:
            owner = redeem_setup_link(provider, visit.path["token"], passphrase)
        except StoreError as error:
            if error.code != "invalid_argument":
                raise
            return _form(visit, 400, "length")
        except SetupLinkSpent:
            raise PageError(410, "setup_link_spent") from None
        log.info("owner.set_up", extra={"owner": owner})
        response = redirect(HOME)
        start_session(visit, response, owner)
        return response

    return show, send


def _check_link(provider: PassphraseProvider, visit: Visit) -> None:
    if not is_setup_link(provider, visit.path["token"]):
        raise PageError(410, "setup_link_spent")


def _form(visit: Visit, status: int = 200, alert: str = "") -> Response:
    values = {"alert": alert, "min_characters": MIN_CHARACTERS, "max_characters": MAX_CHARACTERS}
    return visit.render("setup.html", values, status)
