"""The style sheet and the icon: read once, addressed by their content, so that browsers may keep them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

# Beside the packages, in a checkout and in an installed wheel alike.
TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Others, `favicon.ico`, have an address that cannot change with them."""
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class StaticFile:
    """A file of ours that pages refer to."""

    name: str
    media_type: str
    content: bytes

    @property
    def url(self) -> str:
        """Changes with the content."""
        return f"/static/{self.name}?v={hashlib.sha256(self.content).hexdigest()[:12]}"

    @property
    def route(self) -> Route:
        """Serves it under its plain name, whatever version is asked for."""

        async def serve(request: Request) -> Response:
            return Response(self.content, media_type=self.media_type, headers=_HEADERS)

        return Route(f"/static/{self.name}", serve)


def load() -> tuple[StaticFile, ...]:
    """All of them, by their path below `templates/static`."""
    directory = TEMPLATES / "static"
    return tuple(
        StaticFile(path.relative_to(directory).as_posix(), _MEDIA_TYPES[path.suffix], path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.suffix in _MEDIA_TYPES
    )
