"""`/consent`: the owner sees who asks, where the answer goes and for what, and decides. Every time.

What is granted comes from the pending request on the server and from the boxes that the owner ticked; no
other field of the form means anything (OAuth 2.1 §7.11).
"""

import logging
from dataclasses import dataclass

from starlette.responses import Response

from connector.pages.display import destination, host_of
from connector.pages.errors import PageError
from connector.pages.forms import every, first
from connector.pages.page import REQUEST, Visit, redirect
from connector.pages.pending import Pending
from connector.pages.sign_in import sign_in_path
from oauth import clients
from oauth.authorize import AuthorizationRequest, error_redirect, success_redirect
from oauth.clients import Client
from oauth.errors import AccessDenied
from oauth.grants import issue_code
from store.memory import Space
from store.owners import Owner

log = logging.getLogger(__name__)

NEVER_TICKED = frozenset({"memory:delete"})
"""What cannot be undone needs a tick of the owner's own hand."""
DECISION = "decision"


@dataclass(frozen=True)
class _Question:
    """A pending request, the client behind it and the owner who is asked."""

    pending: Pending
    request: AuthorizationRequest
    client: Client
    owner: Owner
    spaces: tuple[Space, ...]


def show(visit: Visit) -> Response:
    """GET: asks. It decides nothing, whatever its query says."""
    if first(visit.query, DECISION):
        raise PageError(405, "method", headers={"Allow": "POST"})
    pending_id = first(visit.query, REQUEST)
    if visit.owner is None:
        return redirect(sign_in_path(pending_id))
    question = _question(visit, visit.owner, visit.context.pending.find(pending_id))
    return visit.render("consent.html", _shown(visit, question))


def send(visit: Visit) -> Response:
    """POST: the decision, once. The form's token proves that this browser's session saw the question."""
    pending_id = first(visit.form, REQUEST)
    if visit.owner is None:
        return redirect(sign_in_path(pending_id))
    decisions = visit.context.decisions
    # In this order: a twin that decides in between has kept its decision before the question is gone.
    pending = visit.context.pending.find(pending_id)
    if (known := decisions.find(pending_id, visit.cookie)) is not None:
        return redirect(known)
    question = _question(visit, visit.owner, pending)
    location = _decide(visit, question)
    # Of two clicks at once the first that is kept counts: the other's code goes nowhere, and expires.
    if not decisions.keep(pending_id, visit.cookie, location):
        location = decisions.find(pending_id, visit.cookie) or ""
    visit.context.pending.take(pending_id)
    if not location:
        raise PageError(400, "expired")
    return redirect(location)


def _decide(visit: Visit, question: _Question) -> str:
    """Where the browser takes the owner's decision."""
    scopes = frozenset(every(visit.form, "scope")) & frozenset(visit.context.server.scopes.supported)
    spaces = _chosen_spaces(visit, question)
    if first(visit.form, DECISION) != "allow" or not scopes or spaces == ():
        return _deny(visit, question)
    return _allow(visit, question, scopes, spaces)


def _allow(visit: Visit, question: _Question, scopes: frozenset[str], spaces: tuple[str, ...] | None) -> str:
    server, request, owner = visit.context.server, question.request, question.owner.id
    code = issue_code(server, request, question.client, owner, scopes, spaces)
    log.info(
        "consent.allowed",
        extra={**_asker(question), "owner": owner, "scopes": sorted(scopes)},
    )
    return success_redirect(request, code, server.issuer)


def _deny(visit: Visit, question: _Question) -> str:
    request = question.request
    log.info("consent.denied", extra={**_asker(question), "owner": question.owner.id})
    denied = AccessDenied("the owner did not allow it")
    return error_redirect(request.redirect_uri, denied, request.state, visit.context.server.issuer)


def _asker(question: _Question) -> dict[str, str]:
    """Who asks, for the log; the name is the client's own claim."""
    return {"client_id": question.client.client_id, "client_name": question.client.client_name}


def _question(visit: Visit, owner: Owner, pending: Pending | None) -> _Question:
    """The question that this browser may answer.

    Raises:
        PageError: 400; decided, expired, begun in another browser, or its client is gone.
    """
    if pending is None or pending.request is None or not visit.is_same_browser(pending.browser):
        raise PageError(400, "expired")
    client = clients.find(visit.context.server, pending.request.client_id)
    if client is None:
        raise PageError(400, "unknown_client")
    spaces = tuple(visit.context.engine.spaces(owner.id))
    return _Question(pending, pending.request, client, owner, spaces)


def _chosen_spaces(visit: Visit, question: _Question) -> tuple[str, ...] | None:
    """The ticked spaces; None for all, later ones included; empty when none of several was ticked."""
    ticked = frozenset(every(visit.form, "space"))
    if len(question.spaces) < 2 or ticked >= {space.id for space in question.spaces}:
        return None
    return tuple(space.id for space in question.spaces if space.id in ticked)


def _shown(visit: Visit, question: _Question) -> dict[str, object]:
    request, client = question.request, question.client
    scopes = visit.context.server.scopes
    known = [scope for scope in scopes.supported if scope in request.scopes]
    return {
        "pending": question.pending,
        "client_name": client.client_name,
        "client_host": host_of(client.client_id) if client.is_cimd else "",
        "is_verified": client.vouches_for(request.redirect_uri),
        "destination": destination(request.redirect_uri),
        "requested": known,
        "further": [scope for scope in scopes.supported if scope not in request.scopes],
        "never_ticked": NEVER_TICKED,
        "spaces": question.spaces if len(question.spaces) > 1 else (),
    }
