"""The pages' one way in: every path that a person's browser may open."""

from starlette.routing import BaseRoute, Route

from connector.identity.firebase import FirebaseProvider
from connector.identity.oidc import OidcProvider
from connector.identity.passphrase import PassphraseProvider
from connector.pages import (
    account,
    authorize,
    consent,
    firebase,
    headers,
    home,
    memories,
    oidc,
    setup,
    setup_account,
    sign_in,
    site_files,
    static,
    texts,
)
from connector.pages.context import PageContext
from connector.pages.page import Page

__all__ = ["PageContext", "routes"]


def routes(context: PageContext) -> list[BaseRoute]:
    """Every page and the files they refer to, to be mounted at the root of the origin."""
    flow = {
        # Clients send browsers here by GET or POST (RFC 6749 §3.1), so this form alone carries no token.
        "/authorize": Page(
            context,
            authorize.show,
            authorize.send,
            prepare=authorize.prepare,
            limit=context.limit,
            is_opened_by_clients=True,
        ),
        "/sign-in": Page(
            context,
            sign_in.show,
            sign_in.send,
            "sign-in",
            is_opened_by_clients=True,
            policy=_sign_in_policy(context),
            stale=sign_in.stale,
        ),
        "/consent": Page(context, consent.show, consent.send, "consent", is_opened_by_clients=True),
    }
    pages = flow | {
        "/": Page(context, home.show),
        "/sign-out": Page(context, post=sign_in.sign_out, form="sign-out"),
        "/signed-out": Page(context, sign_in.signed_out),
        "/memories/{memory_id}": Page(context, memories.show, limit=context.limit),
        account.DELETE: Page(
            context, account.show_deletion, account.send_deletion, "delete", limit=context.limit
        ),
        account.EXPORT: Page(context, account.export, limit=context.limit),
        "/privacy": Page(context, texts.ShowText("privacy")),
        "/terms": Page(context, texts.ShowText("terms")),
        "/support": Page(context, texts.ShowText("support")),
    }
    pages |= _pages_of_provider(context)
    return [
        *(Route(path, page) for path, page in pages.items()),
        *(file.route for file in static.load()),
        *site_files.routes(context),
    ]


def _pages_of_provider(context: PageContext) -> dict[str, Page]:
    """How a setup link is followed, and where the provider sends the browser back to."""
    pages: dict[str, Page] = {}
    if isinstance(context.provider, PassphraseProvider):
        show, send = setup.pages(context.provider)
        pages["/setup/{token}"] = Page(context, show, send, "setup")
    else:
        pages["/setup/{token}"] = Page(context, setup_account.show, limit=context.limit)
    if isinstance(context.provider, OidcProvider):
        begin, come_back = oidc.pages(context.provider)
        pages["/login/oidc"] = Page(
            context, post=begin, form="sign-in", limit=context.limit, is_opened_by_clients=True
        )
        pages["/login/oidc/callback"] = Page(context, come_back, is_opened_by_clients=True)
    return pages


def _sign_in_policy(context: PageContext) -> str:
    """Only where Firebase signs in does a page run scripts, and only that page."""
    if isinstance(context.provider, FirebaseProvider):
        return firebase.content_security_policy(context.provider.project)
    return headers.CONTENT_SECURITY_POLICY
