"""Authorization server metadata (RFC 8414), also found by those who look for OpenID Connect's."""

from typing import TYPE_CHECKING, Any

from authlib.oauth2 import rfc8414, rfc9207

from oauth.client_metadata import AUTH_METHODS, GRANT_TYPES, RESPONSE_TYPES

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

ASSERTION_ALGORITHMS = ("RS256", "ES256")

PATHS = tuple(
    f"/.well-known/{name}{resource_path}"
    for name in ("oauth-authorization-server", "openid-configuration")
    for resource_path in ("", "/mcp")
)
"""RFC 8414 §3.1, with and without the resource's path, for clients look in all four places."""


def metadata(server: "AuthorizationServer") -> dict[str, Any]:
    """The document (§2), checked by Authlib's model; no OpenID scopes, for some hosts would ask for them."""
    issuer = server.issuer
    document = rfc8414.AuthorizationServerMetadata(
        issuer=issuer,
        authorization_endpoint=f"{issuer}/authorize",
        token_endpoint=f"{issuer}/token",
        registration_endpoint=f"{issuer}/register",
        revocation_endpoint=f"{issuer}/revoke",
        jwks_uri=f"{issuer}/jwks.json",
        scopes_supported=[*server.scopes.default, "offline_access"],
        response_types_supported=list(RESPONSE_TYPES),
        response_modes_supported=["query"],
        grant_types_supported=list(GRANT_TYPES),
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=list(AUTH_METHODS),
        token_endpoint_auth_signing_alg_values_supported=list(ASSERTION_ALGORITHMS),
        revocation_endpoint_auth_methods_supported=list(AUTH_METHODS),
        revocation_endpoint_auth_signing_alg_values_supported=list(ASSERTION_ALGORITHMS),
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
        protected_resources=[server.resource],
    )
    document.validate([rfc9207.AuthorizationServerMetadata])
    return dict(document)
