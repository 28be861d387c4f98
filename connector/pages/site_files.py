"""Small files at fixed addresses that programs look for: robots.txt, security.txt, a favicon, a challenge."""

from datetime import datetime, timedelta

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from connector.pages import static
from connector.pages.context import PageContext

SECURITY_TXT_LIFETIME = timedelta(days=180)
"""RFC 9116 §2.5.5 recommends less than a year."""
# The rest is nobody's but the owner's; what leads there is no use to a search engine.
ROBOTS = "User-agent: *\nAllow: /$\nAllow: /privacy$\nAllow: /terms$\nAllow: /support$\nDisallow: /\n"
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=3600"}


def routes(context: PageContext) -> list[BaseRoute]:
    """All of them; what is not configured is not found."""

    async def robots(request: Request) -> Response:
        return PlainTextResponse(ROBOTS, headers=_HEADERS)

    async def favicon(request: Request) -> Response:
        return Response(icon, media_type="image/x-icon", headers=_HEADERS)

    async def challenge(request: Request) -> Response:
        return _text(context.public_texts.openai_apps_challenge)

    async def security(request: Request) -> Response:
        contact = context.public_texts.contact
        return _text(contact and security_txt(contact, context.public_url, context.now()))

    icon = (static.TEMPLATES / "static" / "favicon.ico").read_bytes()
    return [
        Route("/robots.txt", robots),
        Route("/favicon.ico", favicon),
        Route("/.well-known/openai-apps-challenge", challenge),
        Route("/.well-known/security.txt", security),
    ]


def security_txt(contact: str, public_url: str, now: datetime) -> str:
    """Whom to tell about a hole (RFC 9116); it always expires some months from now, to the day."""
    expires = (now + SECURITY_TXT_LIFETIME).strftime("%Y-%m-%dT00:00:00Z")
    canonical = f"{public_url}/.well-known/security.txt"
    return f"Contact: {contact}\nExpires: {expires}\nCanonical: {canonical}\n"


def _text(content: str) -> Response:
    if not content:
        raise HTTPException(404)
    return PlainTextResponse(content, headers=_HEADERS | {"Cache-Control": "no-store"})
