"""The pages' one way in: every path that a person's browser may open."""

from starlette.routing import BaseRoute, Route

from connector.identity.passphrase import PassphraseProvider
from connector.pages import (
    account,
    authorize,
    consent,
    home,
    memories,
    setup,
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
        "/sign-in": Page(context, sign_in.show, sign_in.send, "sign-in", is_opened_by_clients=True),
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
    if isinstance(context.provider, PassphraseProvider):
        show, send = setup.pages(context.provider)
        pages["/setup/{token}"] = Page(context, show, send, "setup")
    return [
        *(Route(path, page) for path, page in pages.items()),
        *(file.route for file in static.load()),
        *site_files.routes(context),
    ]
