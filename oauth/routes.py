"""HTTP in and out; alone in this package in knowing Starlette.

Each request is read and parsed here, bounded and strictly; what it needs from other hosts is fetched; then
it is handed to synchronous code in one worker thread. Query parameters are never read (OAuth 2.1 §3.2), and
every error is JSON.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from authlib.oauth2 import OAuth2Error
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from oauth import client_authentication, clients, metadata, registration
from oauth.client_authentication import Credentials
from oauth.errors import BodyTooLarge, InvalidClientMetadata, InvalidRequest
from oauth.parameters import FormRequest, parse_form, parse_json
from oauth.rate_limits import RateLimit, network
from oauth.server import Answer, AuthorizationServer

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 64 * 1024

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After"}
ALLOWED_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"

Handler = Callable[[Request], Awaitable[Response]]


def routes(server: AuthorizationServer, monotonic: Callable[[], float] = time.monotonic) -> list[Route]:
    """The endpoints that programs call; those that people see belong to the pages.

    Args:
        server: who answers.
        monotonic: the clock by which rates are counted, in seconds.
    """
    limits = _Limits(server, monotonic)

    async def token(request: Request) -> Response:
        form = await _read_form(request, server.issuer + "/token")
        return await limits.authenticated(request, form, server.create_token_response)

    async def revoke(request: Request) -> Response:
        form = await _read_form(request, server.issuer + "/revoke")
        return await limits.authenticated(request, form, server.create_revocation_response)

    async def register(request: Request) -> Response:
        limits.register(request)
        if _media_type(request) != "application/json":
            raise InvalidClientMetadata("client metadata are sent as application/json")
        members = parse_json(await _read_body(request))
        return JSONResponse(await run_in_threadpool(registration.register, server, members), 201, NO_STORE)

    async def jwks(request: Request) -> Response:
        keys = await run_in_threadpool(server.keys.public_jwks)
        return JSONResponse(keys, headers={"Cache-Control": "max-age=30"})

    async def describe(request: Request) -> Response:
        return JSONResponse(metadata.metadata(server), headers={"Cache-Control": "max-age=300"})

    return [
        Route("/token", _Endpoint("POST", token)),
        Route("/revoke", _Endpoint("POST", revoke)),
        Route("/register", _Endpoint("POST", register)),
        Route("/jwks.json", _Endpoint("GET", jwks)),
        *(Route(path, _Endpoint("GET", describe)) for path in metadata.PATHS),
    ]


class _Limits:
    """Registrations by network and in all; requests and wrong secrets by network and client together.

    Neither alone would do: hosted clients share a few addresses, and all who use one share its client_id.
    """

    def __init__(self, server: AuthorizationServer, monotonic: Callable[[], float]) -> None:
        self._server = server
        self._registrations = RateLimit(200, 0.1, monotonic)
        self._all_registrations = RateLimit(2000, 0.5, monotonic)
        self._requests = RateLimit(600, 10, monotonic)
        self._all_requests = RateLimit(6000, 200, monotonic)
        self._failures = RateLimit(30, 0.5, monotonic)

    def register(self, request: Request) -> None:
        self._registrations.spend(_network(request))
        self._all_registrations.spend("all")

    async def authenticated(
        self, request: Request, form: FormRequest, endpoint: Callable[[FormRequest], Answer]
    ) -> Response:
        """Fetches what the client's authentication needs, then runs the endpoint in a worker thread."""
        credentials = client_authentication.find_credentials(form)
        key = f"{_network(request)} {credentials.unverified_client_id if credentials else ''}"
        self._requests.spend(key)
        self._all_requests.spend("all")
        is_guess = credentials is not None and credentials.client_secret is not None
        if is_guess:
            self._failures.check(key)
        await client_authentication.resolve(self._server, form)
        answer = await run_in_threadpool(endpoint, form)
        if is_guess and answer.status == 401:
            self._failures.spend(key)
        return _response(request, answer, await self._asker(credentials) if answer.status >= 400 else {})

    async def _asker(self, credentials: Credentials | None) -> dict[str, str]:
        """Who was refused, for the log; only a client that is known, for the rest are a stranger's words."""
        if credentials is None:
            return {}
        client = await run_in_threadpool(clients.find, self._server, credentials.unverified_client_id)
        return {} if client is None else {"client_id": client.client_id, "client_name": client.client_name}


def _network(request: Request) -> str:
    """From the connection, as the server saw it; headers are for whoever trusts the proxy."""
    return network(request.client.host if request.client is not None else "")


class _Endpoint:
    """One path: its method, the preflight, 405 for the rest, errors as JSON, and open to every origin."""

    def __init__(self, method: str, handler: Handler) -> None:
        self._methods = ("GET", "HEAD") if method == "GET" else (method,)
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        response.headers.update(CORS)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        allowed = ", ".join(self._methods)
        if request.method == "OPTIONS":
            headers = {
                "Access-Control-Allow-Methods": allowed,
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
            }
            return Response(
                status_code=204, headers={"Allow": allowed, "Access-Control-Max-Age": "600", **headers}
            )
        if request.method not in self._methods:
            body = {"error": "invalid_request", "error_description": f"this endpoint answers {allowed} only"}
            return JSONResponse(body, 405, {"Allow": allowed, **NO_STORE})
        try:
            return await self._handler(request)
        except OAuth2Error as error:
            return _response(request, Answer(*error()))


def _response(request: Request, answer: Answer, asker: Mapping[str, str] = MappingProxyType({})) -> Response:
    if answer.status >= 400:
        fields = {"path": request.url.path, "status": answer.status, **answer.body, **asker}
        log.info("request.refused", extra=fields)
    return JSONResponse(answer.body, answer.status, dict(answer.headers) | NO_STORE)


async def _read_form(request: Request, uri: str) -> FormRequest:
    if _media_type(request) != "application/x-www-form-urlencoded":
        raise InvalidRequest("parameters are sent as application/x-www-form-urlencoded")
    authorization = request.headers.getlist("authorization")
    if len(authorization) > 1:
        raise InvalidRequest("more than one Authorization header")
    params = parse_form(await _read_body(request))
    return FormRequest(uri, params, {"authorization": authorization[0]} if authorization else {})


def _media_type(request: Request) -> str:
    values = request.headers.getlist("content-type")
    return values[0].partition(";")[0].strip().lower() if len(values) == 1 else ""


async def _read_body(request: Request) -> bytes:
    too_large = BodyTooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        raise too_large
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise too_large
    except ClientDisconnect:
        raise InvalidRequest("the connection closed before the body ended") from None
    return bytes(body)
