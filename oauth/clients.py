"""Clients, however they became known: registered, published as a document, or entered by the operator.

A record of kind `client` per registered client, keyed by its id; a document's client has none.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import ClientMixin

from oauth.client_metadata import SECRET_METHODS
from oauth.records import NEVER, Value
from oauth.redirect_uris import is_registered

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

KIND = "client"
ID_PATTERN = re.compile(r"vmc_(?:dcr|pre)_[0-9a-f]{32}")
UNNAMED = "Unnamed client"


@dataclass(frozen=True)
class Client(ClientMixin):
    """A client's registration; `client_name` is a claim, never an identity."""

    client_id: str
    client_name: str
    redirect_uris: tuple[str, ...]
    token_endpoint_auth_method: str
    created_at: datetime
    other_auth_methods: frozenset[str] = frozenset()
    """What a document offers beside its `token_endpoint_auth_method`."""
    grant_types: frozenset[str] = frozenset({"authorization_code", "refresh_token"})
    client_uri: str | None = None
    logo_uri: str | None = None
    tos_uri: str | None = None
    policy_uri: str | None = None
    jwks: Value | None = field(default=None, hash=False)
    jwks_uri: str | None = None
    client_secret_hash: str | None = field(default=None, repr=False)
    registered_by: str = "itself"
    """`itself`, `operator`, or `document`."""
    last_used_at: datetime | None = None
    """When the owner last let this client in."""

    @property
    def is_cimd(self) -> bool:
        """Whether the client is described by the document that its id is the address of."""
        return self.client_id.startswith("https://")

    @property
    def verified_host(self) -> str | None:
        """The host that vouches for the client: that of its document; None when nobody does."""
        return urlsplit(self.client_id).hostname if self.is_cimd else None

    def vouches_for(self, redirect_uri: str) -> bool:
        """Whether the host of the client's document is also where the code goes."""
        return self.verified_host is not None and urlsplit(redirect_uri).hostname == self.verified_host

    @property
    def auth_methods(self) -> frozenset[str]:
        """How the client may authenticate; a secret may come by header or body."""
        methods = self.other_auth_methods | {self.token_endpoint_auth_method}
        return methods | SECRET_METHODS if methods & SECRET_METHODS else methods

    def is_redirect_uri(self, uri: str) -> bool:
        """Whether the client registered this URI."""
        return is_registered(uri, self.redirect_uris)

    def is_secret(self, client_secret: str) -> bool:
        """Whether this is the client's secret, in a time that tells nothing."""
        expected = self.client_secret_hash or hash_secret("")
        is_equal = hmac.compare_digest(hash_secret(client_secret), expected)
        return is_equal and self.client_secret_hash is not None

    def check_grant_type(self, grant_type: str) -> bool:
        """Asked by Authlib's grants: whether the client registered for this one."""
        return grant_type in self.grant_types

    def to_value(self) -> Value:
        """The record's value."""
        return {
            "client_id": self.client_id,
            "client_name": self.client_name,
            "redirect_uris": list(self.redirect_uris),
            "token_endpoint_auth_method": self.token_endpoint_auth_method,
            "other_auth_methods": sorted(self.other_auth_methods),
            "grant_types": sorted(self.grant_types),
            "client_uri": self.client_uri,
            "logo_uri": self.logo_uri,
            "tos_uri": self.tos_uri,
            "policy_uri": self.policy_uri,
            "jwks": self.jwks,
            "jwks_uri": self.jwks_uri,
            "client_secret_hash": self.client_secret_hash,
            "registered_by": self.registered_by,
            "created_at": self.created_at.isoformat(),
            "last_used_at": self.last_used_at and self.last_used_at.isoformat(),
        }

    @classmethod
    def from_value(cls, value: Value) -> "Client":
        """The client of a record's value."""
        members = dict(value)
        for name in ("other_auth_methods", "grant_types"):
            members[name] = frozenset(members[name])
        for name in ("created_at", "last_used_at"):
            members[name] = members[name] and datetime.fromisoformat(members[name])
        members["redirect_uris"] = tuple(members["redirect_uris"])
        return cls(**members)

    @classmethod
    def from_metadata(
        cls, client_id: str, metadata: Mapping[str, Any], created_at: datetime, registered_by: str = "itself"
    ) -> "Client":
        """The client that checked metadata describe (RFC 7591 §2)."""
        return cls(
            client_id=client_id,
            client_name=metadata.get("client_name", UNNAMED),
            redirect_uris=tuple(metadata["redirect_uris"]),
            token_endpoint_auth_method=metadata["token_endpoint_auth_method"],
            grant_types=frozenset(metadata["grant_types"]),
            client_uri=metadata.get("client_uri"),
            logo_uri=metadata.get("logo_uri"),
            tos_uri=metadata.get("tos_uri"),
            policy_uri=metadata.get("policy_uri"),
            jwks=metadata.get("jwks"),
            jwks_uri=metadata.get("jwks_uri"),
            created_at=created_at,
            registered_by=registered_by,
        )


NOBODY = Client("", UNNAMED, (), "none", datetime.min.replace(tzinfo=UTC))
"""Compared with when there is no client, so that an unknown one costs the same time."""


def hash_secret(secret: str) -> str:
    """What is stored of a secret of 256 random bits; no slow hash is needed for those."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(server: "AuthorizationServer", client_id: str) -> Client | None:
    """The client with exactly this id; nothing is fetched (`client_documents.resolve` does that before)."""
    if not ID_PATTERN.fullmatch(client_id):
        return server.client_documents.find(client_id)
    value = server.records.get(KIND, client_id)
    return Client.from_value(value) if value is not None else None


def touch(server: "AuthorizationServer", client: Client) -> None:
    """The owner let the client in: its registration now outlives every grant that it may have."""
    if client.is_cimd:
        return
    old = server.records.get(KIND, client.client_id)
    if old is None:
        return
    now = server.now()
    new = replace(Client.from_value(old), last_used_at=now).to_value()
    expires_at = now + server.lifetimes.refresh_absolute + server.lifetimes.client_unused
    if client.registered_by == "operator":
        expires_at = NEVER
    # Losing the race is fine: whoever won stamped it too.
    server.records.swap(KIND, client.client_id, old, new, expires_at)


def entered_by_operator(server: "AuthorizationServer") -> list[Client]:
    """The clients that the operator entered, oldest first."""
    values = server.records.select(KIND, "registered_by", "operator")
    return sorted((Client.from_value(value) for value in values), key=lambda client: client.created_at)


def delete(server: "AuthorizationServer", client_id: str) -> None:
    """Forgets a registered client; its grants live until they are ended."""
    if ID_PATTERN.fullmatch(client_id):
        server.records.delete(KIND, client_id)
