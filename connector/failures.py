"""How the application answers when no handler did."""

import logging

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from connector.logs import request_id

log = logging.getLogger(__name__)


async def http_error(request: Request, error: Exception) -> JSONResponse:
    """Paths and methods that do not exist are answered in JSON, unknown `/.well-known/*` included."""
    if not isinstance(error, HTTPException):
        raise TypeError from error
    names = {404: "not_found", 405: "method_not_allowed"}
    body = {"error": names.get(error.status_code, "invalid_request"), "error_description": error.detail}
    return JSONResponse(body, error.status_code, {"Cache-Control": "no-store", **(error.headers or {})})


async def store_error(request: Request, error: Exception) -> JSONResponse:
    """The store is away for the moment: nothing is lost, and the client tries again."""
    log.error("store.unavailable")
    body = {"error": "temporarily_unavailable", "error_description": "The store is busy; try again"}
    return JSONResponse(body, 503, {"Cache-Control": "no-store", "Retry-After": "5"})


async def bug(request: Request, error: Exception) -> JSONResponse:
    """The client learns that it failed; the log holds the one traceback."""
    body = {
        "error": "server_error",
        "error_description": "Something went wrong on this server; its log says what",
    }
    # The server closes the connection after a bug; a client or proxy that is not told reuses it and is reset.
    headers = {"Cache-Control": "no-store", "Connection": "close", "X-Request-Id": request_id.get() or ""}
    return JSONResponse(body, 500, headers)
