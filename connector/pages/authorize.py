"""`/authorize`: from a client's request to a pending matter of this browser (OAuth 2.1 §4.1.1).

`identify` fails to a page. After it errors go to the client, except that a browser in which nobody is signed
in is never bounced to a client that anybody could have registered (RFC 9700 §4.11.2).
"""

import logging
from urllib.parse import urlencode

from starlette.responses import Response

from connector.pages.context import PageContext
from connector.pages.errors import PageError, Problem
from connector.pages.forms import Parameters
from connector.pages.page import Visit, redirect
from connector.pages.sign_in import sign_in_path
from oauth import client_documents
from oauth.authorize import AuthorizationRequest, error_redirect, find_state, identify, validate
from oauth.clients import Client
from oauth.errors import InvalidClient, OAuthError, TemporarilyUnavailable
from oauth.parameters import single

log = logging.getLogger(__name__)

OPERATOR_PREFIX = "vmc_pre_"
"""Clients that the operator entered."""
ASKS_FOR_SIGN_IN = frozenset({"login", "select_account"})
"""What a client may ask for by `prompt` (OpenID Connect Core §3.1.2.1); consent is asked every time."""


async def prepare(context: PageContext, params: Parameters) -> None:
    """Fetches the document of a client whose id is an address.

    Raises:
        PageError: 400 for a bad document, 503 while its host does not answer.
    """
    try:
        await client_documents.resolve(context.server, single(params, "client_id"))
    except OAuthError as error:
        raise _unidentified(error) from None


def show(visit: Visit) -> Response:
    """GET: the request is in the query."""
    return _authorize(visit, visit.query)


def send(visit: Visit) -> Response:
    """POST: the request is in the body (RFC 6749 §3.1).

    Sent from the client's own site it comes without our `Lax` cookie; the same request by GET brings it.
    """
    if visit.is_new_browser:
        checked = _check(visit, visit.form)
        return checked if isinstance(checked, Response) else redirect(f"/authorize?{urlencode(visit.form)}")
    return _authorize(visit, visit.form)


def _authorize(visit: Visit, params: Parameters) -> Response:
    checked = _check(visit, params)
    if isinstance(checked, Response):
        return checked
    request, client = checked
    pending = visit.context.pending.open_request(visit.browser, request)
    log.info("authorization.requested", extra=_asker(client))
    is_enough = visit.owner is not None and not request.prompt & ASKS_FOR_SIGN_IN
    return redirect(pending.path if is_enough else sign_in_path(pending.id))


def _check(visit: Visit, params: Parameters) -> tuple[AuthorizationRequest, Client] | Response:
    """The request and who makes it, or the redirect that tells the client what is wrong with it.

    Raises:
        PageError: client or redirect URI are unproven, or nobody is signed in.
    """
    server = visit.context.server
    try:
        client, redirect_uri = identify(server, params)
    except OAuthError as error:
        raise _unidentified(error) from None
    try:
        return validate(server, client, redirect_uri, params), client
    except OAuthError as error:
        log.warning("authorization.refused", extra={**_asker(client), "error": error.error})
        if visit.owner is None and not client.client_id.startswith(OPERATOR_PREFIX):
            raise PageError(400, "bad_request", _detail(error)) from None
        return redirect(error_redirect(redirect_uri, error, find_state(params), server.issuer))


def _asker(client: Client) -> dict[str, str]:
    """Who asks, for the log; the name is the client's own claim."""
    return {"client_id": client.client_id, "client_name": client.client_name}


def _unidentified(error: OAuthError) -> PageError:
    log.warning("authorization.unidentified", extra={"error": error.error})
    if isinstance(error, TemporarilyUnavailable):
        return PageError(error.status_code, "unreachable_client", _detail(error), error.extra_headers())
    problem: Problem = "unknown_client" if isinstance(error, InvalidClient) else "bad_request"
    # Always 400: a 401 would ask the browser for a password.
    return PageError(400, problem, _detail(error))


def _detail(error: OAuthError) -> str:
    return f"{error.error}: {error.description}"
