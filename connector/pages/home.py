"""`/`: what this is and which address to connect. The one page that needs no sign-in."""

from starlette.responses import Response

from connector.pages.page import Visit


def show(visit: Visit) -> Response:
    """Public; with a sign-out button for somebody signed in."""
    return visit.render("home.html", {"is_set_up": visit.context.provider.is_set_up()})
