"""`/setup/{token}` where an account elsewhere signs in: the way to the sign-in page that spends the link."""

from starlette.responses import Response

from connector.identity.setup_links import digest
from connector.pages.errors import PageError
from connector.pages.page import Visit, redirect
from connector.pages.sign_in import HOME, sign_in_path


def show(visit: Visit) -> Response:
    """Looking spends nothing; the token itself goes no further than this address."""
    context = visit.context
    key = digest(visit.path["token"])
    link = context.setup_links.find(key)
    if link is None or not context.admission.is_good(link):
        raise PageError(410, "setup_link_spent")
    return redirect(sign_in_path(context.pending.open_setup(visit.browser, key, HOME).id))
