"""Dynamic client registration (RFC 7591). Cheap and open: it gives a client a name, not a right."""

import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oauth import client_metadata
from oauth.client_metadata import SECRET_METHODS
from oauth.clients import KIND, Client, hash_secret
from oauth.records import NEVER

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)

_PREFIXES = {"itself": "vmc_dcr_", "operator": "vmc_pre_"}


def register(server: "AuthorizationServer", members: Mapping[str, Any]) -> dict[str, Any]:
    """Registers a client that asks for it: gone after 90 days unless the owner lets it in (§3).

    Args:
        server: where it registers.
        members: the JSON object that it sent; ids and secrets of its own choice are ignored.

    Returns:
        The client information response (§3.2.1): what was registered, not what was asked for.

    Raises:
        OAuthError: `invalid_redirect_uri` or `invalid_client_metadata` (§3.2.2).
    """
    client, answer = _create(server, members, "itself")
    server.records.create(
        KIND, client.client_id, client.to_value(), server.now() + server.lifetimes.client_unused
    )
    log.info("client.registered", extra={"client_id": client.client_id, "client_name": client.client_name})
    return answer


def preregister(server: "AuthorizationServer", members: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a client that the operator enters; it stays until the operator deletes it."""
    client, answer = _create(server, members, "operator")
    server.records.create(KIND, client.client_id, client.to_value(), NEVER)
    log.info("client.preregistered", extra={"client_id": client.client_id, "client_name": client.client_name})
    return answer


def _create(
    server: "AuthorizationServer", members: Mapping[str, Any], registered_by: str
) -> tuple[Client, dict[str, Any]]:
    metadata = client_metadata.parse(members, server.scopes.supported, server.app_redirect_uris)
    now = server.now()
    client_id = _PREFIXES[registered_by] + secrets.token_hex(16)
    client = Client.from_metadata(client_id, metadata, now, registered_by)
    answer = {"client_id": client.client_id, "client_id_issued_at": int(now.timestamp()), **metadata}
    if client.token_endpoint_auth_method in SECRET_METHODS:
        client_secret = secrets.token_urlsafe(32)
        client = replace(client, client_secret_hash=hash_secret(client_secret))
        answer |= {"client_secret": client_secret, "client_secret_expires_at": 0}
    return client, answer
