"""Clients whose id is the address of a document about them (client ID metadata documents, CIMD draft).

`resolve` runs before the worker thread and sees to it that a good copy lies in the records, kind
`client_document`; `find` only reads. The documents of four well-known hosts ship with the package, for they
are often refused to servers in clouds, and those hosts do not fall back to registration.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

from oauth import client_metadata
from oauth.client_metadata import SECRET_METHODS
from oauth.clients import Client
from oauth.errors import OAuthError
from oauth.fetched_copies import FetchedCopies
from oauth.records import Value
from oauth.safe_fetch import BadDocument, Fetcher, is_fetchable

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

KIND = "client_document"

_SECRET_MEMBERS = frozenset({"client_secret", "client_secret_expires_at"})
_METHODS = ("none", "private_key_jwt")


class ClientDocuments:
    """The documents of one server's clients."""

    def __init__(self, server: "AuthorizationServer", fetcher: Fetcher) -> None:
        self._server = server
        self._copies = FetchedCopies(
            KIND, server.records, fetcher, server.lifetimes.client_unused, server.now
        )
        pinned = json.loads((files("oauth") / "pinned_clients.json").read_text())
        self._pinned_at = datetime.fromisoformat(pinned["written"]).replace(tzinfo=UTC)
        self._pinned: dict[str, Value] = pinned["documents"]

    def find(self, client_id: str) -> Client | None:
        """The client of the last good copy, or of the one that ships with the package."""
        if not is_client_id(client_id):
            return None
        copy = self._copies.find(client_id)
        if copy is not None:
            return _client(client_id, copy.members, copy.fetched_at)
        if client_id in self._pinned:
            return _client(client_id, self._check(client_id, self._pinned[client_id]), self._pinned_at)
        return None

    async def refresh(self, client_id: str) -> None:
        """Fetches the document if there is no fresh copy.

        Raises:
            BadDocument: no document for this client there, or an address that may not be fetched.
            Unreachable: its host does not answer, and there is no copy.
        """
        check = partial(self._check, client_id)
        await self._copies.refresh(client_id, check, has_fallback=client_id in self._pinned)

    def _check(self, client_id: str, members: Value) -> Value:
        """What is kept of a document (CIMD draft §4.1): it names itself, and nothing in it is secret."""
        if members.get("client_id") != client_id:
            raise BadDocument("the document is about another client")
        if _SECRET_MEMBERS & members.keys() or members.get("token_endpoint_auth_method") in SECRET_METHODS:
            raise BadDocument("a public document cannot hold a secret")
        try:
            kept = client_metadata.parse(
                members, self._server.scopes.supported, self._server.app_redirect_uris
            )
        except OAuthError as error:
            raise BadDocument(error.description) from error
        offered = members.get("token_endpoint_auth_methods_supported")
        if isinstance(offered, list):
            kept["token_endpoint_auth_methods_supported"] = [name for name in _METHODS if name in offered]
        return kept


def is_client_id(client_id: str) -> bool:
    """Whether this is the address of a document, and not an id that was handed out (CIMD draft §3)."""
    return is_fetchable(client_id)


async def resolve(server: "AuthorizationServer", client_id: str | None) -> None:
    """Makes `clients.find` know the client, if its id is an address. To be awaited before the worker thread.

    Raises:
        BadDocument: for a page with status 400, `invalid_client` for programs.
        Unreachable: 503, come back later; a client that is told otherwise forgets its connection.
    """
    if client_id is not None and client_id.partition(":")[0].lower() in ("https", "http"):
        if not is_client_id(client_id):
            raise BadDocument("the client_id is not an address that may be fetched")
        await server.client_documents.refresh(client_id)


def _client(client_id: str, metadata: Value, fetched_at: datetime) -> Client:
    offered = frozenset(metadata.get("token_endpoint_auth_methods_supported", ()))
    client = Client.from_metadata(client_id, metadata, fetched_at, "document")
    return replace(client, other_auth_methods=offered)
