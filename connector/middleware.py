"""The outermost ASGI layer: one request id, one log line, the client's address, and no foreign Host."""

import logging
import re
import secrets
import time
from collections.abc import Callable, Collection
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connector.logs import request_id

log = logging.getLogger(__name__)

CLIENT_PATHS = frozenset({"/mcp", "/authorize", "/token", "/register", "/revoke"})

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.IGNORECASE)


class RequestLog:
    """Gives the request an id (ours, never the caller's) and logs it once, without its query."""

    def __init__(
        self,
        app: ASGIApp,
        paths: Collection[str],
        refused: Callable[[str, int], None] | None = None,
        observe: Callable[[str, str, int, float], None] | None = None,
    ) -> None:
        """A log of the application.

        Args:
            app: what answers.
            paths: those of the application's routes; any other is logged as `…`.
            refused: told the path and status of each request from a client program that was refused.
            observe: told the logged path, method, status and seconds of every request.
        """
        self._app = app
        self._refused = refused
        self._observe = observe
        self._known = {path for path in paths if "{" not in path}
        self._prefixes = tuple(path.split("{")[0] for path in paths if "{" in path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        current = secrets.token_hex(8)
        token = request_id.set(current)
        started, status = time.perf_counter(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", current.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except BaseException:
            # The id stays: what answers a bug and writes its traceback is outside, in this same task.
            self._note(scope, status, time.perf_counter() - started)
            raise
        self._note(scope, status, time.perf_counter() - started)
        request_id.reset(token)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = self._logged(scope["path"])
        fields = {"method": scope["method"], "path": path, "status": status, "ms": round(seconds * 1000, 2)}
        log.info("http.request", extra=fields)
        if self._observe is not None:
            self._observe(path, scope["method"], status, seconds)
        if self._refused is not None and 400 <= status < 500 and scope["path"] in CLIENT_PATHS:
            self._refused(scope["path"], status)

    def _logged(self, path: str) -> str:
        """The path without what only its holder may know: a setup link's token, a mistyped secret."""
        if path in self._known:
            return path
        return next((prefix + "…" for prefix in self._prefixes if path.startswith(prefix)), "…")


class ClientAddress:
    """Replaces a trusted proxy's address by that of the client it speaks for.

    Read from the right, the first address of `X-Forwarded-For` that is no trusted proxy is the last one that
    somebody trusted has seen; what stands left of it anybody may have written.
    """

    def __init__(self, app: ASGIApp, trusted: Collection[IPv4Network | IPv6Network]) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if scope["type"] == "http" and client is not None and self._is_trusted(client[0]):
            hops = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
            for hop in reversed([hop.strip() for hop in hops]):
                if not _is_address(hop):
                    break
                scope["client"] = (hop, 0)
                if not self._is_trusted(hop):
                    break
        await self._app(scope, receive, send)

    def _is_trusted(self, address: str) -> bool:
        return _is_address(address) and any(ip_address(address) in network for network in self._trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class HostCheck:
    """Answers only to the configured public host (OAUTH "One origin", DNS rebinding).

    Health checks are exempt: they come by address, and tell nothing.
    """

    def __init__(self, app: ASGIApp, public_url: str) -> None:
        parts = urlsplit(public_url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        bare = parts.netloc.removesuffix(f":{port}")
        self._app = app
        self._allowed = {f"{bare}:{port}"} | ({bare} if port in (80, 443) else set())
        self._message = f"this server answers at {public_url}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/health"):
            hosts = Headers(scope=scope).getlist("host")
            if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
                await self._refuse(400, scope, receive, send)
                return
            if hosts[0].lower() not in self._allowed:
                await self._refuse(421, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _refuse(self, status: int, scope: Scope, receive: Receive, send: Send) -> None:
        body = {"error": "invalid_request", "error_description": self._message}
        await JSONResponse(body, status, {"Cache-Control": "no-store"})(scope, receive, send)
