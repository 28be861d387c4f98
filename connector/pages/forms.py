"""Queries and forms: read with a bound, parsed as strictly as OAuth's own.

Repeats are kept: `oauth` must see that a parameter came twice; the pages' own fields are read by name, once
or as a list.
"""

from collections.abc import Sequence
from typing import TypeAlias

from starlette.requests import ClientDisconnect, Request

from connector.pages.errors import PageError
from oauth.errors import InvalidRequest
from oauth.parameters import parse_form

Parameters: TypeAlias = Sequence[tuple[str, str]]

MAX_BODY_BYTES = 64 * 1024
_FORM_TYPE = "application/x-www-form-urlencoded"


def read_query(request: Request) -> Parameters:
    """The query's parameters.

    Raises:
        PageError: 400.
    """
    return _parse(request.scope["query_string"])


async def read_form(request: Request) -> Parameters:
    """The body's parameters.

    Raises:
        PageError: 400, 413 or 415.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != _FORM_TYPE:
        raise PageError(415, "unreadable")
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise PageError(413, "too_large")
    except ClientDisconnect:
        raise PageError(400, "unreadable") from None
    return _parse(bytes(body))


def _parse(raw: bytes) -> Parameters:
    try:
        return parse_form(raw)
    except InvalidRequest:
        raise PageError(400, "unreadable") from None


def first(parameters: Parameters, name: str) -> str:
    """The parameter's value, empty when absent; of several the first."""
    return next((value for key, value in parameters if key == name), "")


def every(parameters: Parameters, name: str) -> tuple[str, ...]:
    """All values of the parameter."""
    return tuple(value for key, value in parameters if key == name)
