"""The guard before the MCP endpoint, and the metadata that tells a client how to pass it.

RFC 6750 (bearer tokens), RFC 9728 (protected-resource metadata). The order of checks is the contract's:
preflight, token, Origin, method, media type, size, scope; the Host was checked before.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connector.access import Principal
from oauth.errors import InvalidToken

MAX_BODY_BYTES = 4 * 1024 * 1024
METADATA_PATH = "/.well-known/oauth-protected-resource"
HOSTED_ORIGINS = ("https://claude.ai", "https://claude.com", "https://chatgpt.com")
ALLOWED_HEADERS = (
    "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Mcp-Param-*"
)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Every escape in turn, so that an escaped backslash is not taken for the beginning of another."""
_LOOPBACK_PREFIXES = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")


class Refusal(Exception):
    """An answer given instead of the endpoint's; made into JSON in one place."""

    def __init__(
        self, status: int, error: str, description: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"error": error, "error_description": description}
        self.headers = headers or {}


class Authenticator(Protocol):
    """Knows the bearer of a token; `access.Access` is the real one."""

    async def authenticate(self, token: str) -> Principal:
        """The token's principal.

        Raises:
            InvalidToken: it opens nothing.
        """


class Challenge:
    """The `WWW-Authenticate` values of one resource (RFC 6750 §3, RFC 9728 §5.1)."""

    def __init__(self, resource_metadata: str, default_scopes: Iterable[str]) -> None:
        self._resource_metadata = resource_metadata
        self._default_scope = " ".join(default_scopes)

    def no_token(self) -> str:
        """No credentials: no `error`, so that the client starts from the beginning."""
        return self._value(scope=self._default_scope)

    def invalid_token(self) -> str:
        """A token that no longer opens anything: refresh, or sign in again."""
        return self._value(error="invalid_token", error_description=_DEAD_TOKEN, scope=self._default_scope)

    def insufficient_scope(self, scopes: Iterable[str]) -> str:
        """Step up: every scope that the operation needs."""
        return self._value(
            error="insufficient_scope",
            error_description="This tool needs a permission that the owner has not given",
            scope=" ".join(sorted(scopes)),
        )

    def _value(self, **attributes: str) -> str:
        attributes["resource_metadata"] = self._resource_metadata
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in attributes.items())


_DEAD_TOKEN = "The access token is unknown, expired or revoked"  # noqa: S105 - a sentence, no secret


class Guard:
    """The ASGI application at `/mcp`: lets a call through with its `Principal` in `scope["state"]`."""

    def __init__(
        self,
        endpoint: ASGIApp,
        access: Authenticator,
        challenge: Challenge,
        origins: Iterable[str],
        scopes_of: Callable[[str], frozenset[str] | None],
    ) -> None:
        """Args: `scopes_of` names the scopes that a tool needs, None for an unknown tool."""
        self._endpoint = endpoint
        self._access = access
        self._challenge = challenge
        self._origins = frozenset(origins)
        self._scopes_of = scopes_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and self._is_allowed(origin):
            send = _with_cors(send, origin)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await self._preflight(origin)(scope, receive, send)
            return
        try:
            principal = await self._authenticate(headers)
            self._check_request(scope["method"], origin, headers)
            body = _without_lone_surrogates(await _read_body(headers, receive))
            self._check_scopes(principal, headers, body)
        except Refusal as refusal:
            answer = JSONResponse(
                refusal.body, refusal.status, {"Cache-Control": "no-store"} | refusal.headers
            )
            await answer(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._endpoint(scope, _replay(body, receive), send)

    def _is_allowed(self, origin: str) -> bool:
        return origin in self._origins or (
            origin.startswith(_LOOPBACK_PREFIXES) and origin.rsplit(":", 1)[1].isdecimal()
        )

    def _preflight(self, origin: str | None) -> Response:
        if origin is None or not self._is_allowed(origin):
            return Response(status_code=403)
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": "POST",
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
                "Access-Control-Max-Age": "600",
            },
        )

    async def _authenticate(self, headers: Headers) -> Principal:
        """Tokens only from the `Authorization` header (OAuth 2.1 §5.1.1)."""
        values = headers.getlist("authorization")
        if len(values) > 1:
            raise Refusal(400, "invalid_request", "More than one Authorization header")
        scheme, _, token = values[0].partition(" ") if values else ("", "", "")
        if scheme.lower() != "bearer":
            challenge = {"WWW-Authenticate": self._challenge.no_token()}
            raise Refusal(401, "unauthorized", "Sign in: this endpoint needs an access token", challenge)
        try:
            return await self._access.authenticate(token.strip(" "))
        except InvalidToken as error:
            challenge = {"WWW-Authenticate": self._challenge.invalid_token()}
            raise Refusal(401, "invalid_token", _DEAD_TOKEN, challenge) from error

    def _check_request(self, method: str, origin: str | None, headers: Headers) -> None:
        if origin is not None and not self._is_allowed(origin):
            raise Refusal(403, "invalid_request", "This Origin may not call the server")
        if method != "POST":
            raise Refusal(405, "invalid_request", "Send MCP messages by POST", {"Allow": "POST"})
        content_types = headers.getlist("content-type")
        media_type = content_types[0].split(";")[0].strip().lower() if len(content_types) == 1 else ""
        if media_type != "application/json":
            raise Refusal(415, "invalid_request", "MCP messages are application/json")

    def _check_scopes(self, principal: Principal, headers: Headers, body: bytes) -> None:
        """HTTP 403 with the scopes to ask for; OpenAI's hosts are answered by the tool instead."""
        tool = _called_tool(headers, body)
        needed = self._scopes_of(tool) if tool is not None else None
        if needed is None or needed <= principal.scopes or principal.is_openai:
            return
        challenge = {"WWW-Authenticate": self._challenge.insufficient_scope(needed)}
        raise Refusal(403, "insufficient_scope", "The owner has not given this permission", challenge)


def _called_tool(headers: Headers, body: bytes) -> str | None:
    """The tool's name from the headers of 2026-07-28 requests, from the body of older ones.

    The SDK refuses headers that contradict the body, and the dispatcher checks the scope again.
    """
    version = headers.get("mcp-protocol-version")
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return headers.get("mcp-name") if headers.get("mcp-method") == "tools/call" else None
    message = _parse(body)
    if message.get("method") != "tools/call" or not isinstance(params := message.get("params"), dict):
        return None
    name = params.get("name")
    return name if isinstance(name, str) else None


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(400, "invalid_request", "The body is not JSON") from error
    if not isinstance(message, dict):
        raise Refusal(400, "invalid_request", "Send one JSON-RPC message at a time, batches are not served")
    return message


def _without_lone_surrogates(body: bytes) -> bytes:
    r"""U+FFFD for each escape of half a character, such as "\ud83d" alone.

    JSON allows them (RFC 8259 §8.2) and JavaScript hosts send them when they cut a text in the middle of an
    emoji; strict parsers refuse the whole message.
    """
    if b"\\ud" not in body.lower():
        return body
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], body)


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    too_large = Refusal(413, "invalid_request", f"The body is larger than {MAX_BODY_BYTES} bytes")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "invalid_request", "The connection closed before the body ended")
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then whatever the connection says."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _with_cors(send: Send, origin: str) -> Send:
    """Lets an allowed origin read every answer of the endpoint, refusals included; never with credentials."""

    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = "WWW-Authenticate"
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_cors


def metadata_routes(issuer: str, resource: str, scopes: Iterable[str]) -> list[Route]:
    """Protected-resource metadata at the path form and at the root (RFC 9728 §3.1)."""
    document = {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": "Vademecum",
        "resource_documentation": issuer + "/",
    }

    async def metadata(request: Request) -> JSONResponse:
        return JSONResponse(
            document, headers={"Access-Control-Allow-Origin": "*", "Cache-Control": "max-age=300"}
        )

    async def preflight(request: Request) -> Response:
        headers = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": "GET",
            "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        }
        return Response(status_code=204, headers=headers)

    paths = (METADATA_PATH, METADATA_PATH + "/mcp")
    return [Route(path, metadata) for path in paths] + [
        Route(path, preflight, methods=["OPTIONS"]) for path in paths
    ]
