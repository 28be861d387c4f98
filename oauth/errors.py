"""OAuth's error codes, one type each, on Authlib's `OAuth2Error`.

RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7591 §3.2.2, RFC 8707 §2. The description is read by the
client's developer; Authlib refuses characters outside RFC 6749's set, and nothing here echoes input.
"""

from collections.abc import Mapping

from authlib.oauth2 import OAuth2Error


class OAuthError(OAuth2Error):
    """An answer in the client's language; `status_code` is 400 unless a class says otherwise."""

    error: str
    status_code = 400

    def __init__(self, description: str) -> None:
        super().__init__(description)  # type: ignore[no-untyped-call]

    def extra_headers(self) -> Mapping[str, str]:
        """Headers beside the content type and `no-store`."""
        return {}

    def get_headers(self) -> list[tuple[str, str]]:
        """Authlib's headers and ours."""
        headers: list[tuple[str, str]] = super().get_headers()  # type: ignore[no-untyped-call]
        return [*headers, *self.extra_headers().items()]


class InvalidRequest(OAuthError):
    """A parameter is missing, repeated or malformed (RFC 6749 §5.2)."""

    error = "invalid_request"


class InvalidClient(OAuthError):
    """The client is unknown or did not authenticate; 401, for hosts register again only then (§5.2)."""

    error = "invalid_client"
    status_code = 401

    def extra_headers(self) -> Mapping[str, str]:
        """The challenge that RFC 9110 §11.6.1 asks of every 401."""
        return {"WWW-Authenticate": 'Basic realm="vademecum"'}


class InvalidGrant(OAuthError):
    """Code or refresh token unknown, expired, spent or another client's (RFC 6749 §5.2)."""

    error = "invalid_grant"


class UnauthorizedClient(OAuthError):
    """The client registered without this grant type (RFC 6749 §5.2)."""

    error = "unauthorized_client"


class UnsupportedGrantType(OAuthError):
    """Neither `authorization_code` nor `refresh_token` (RFC 6749 §5.2)."""

    error = "unsupported_grant_type"


class UnsupportedResponseType(OAuthError):
    """Not `code` (RFC 6749 §4.1.2.1)."""

    error = "unsupported_response_type"


class InvalidScope(OAuthError):
    """More than the owner ever granted, or nothing that is left of it (RFC 6749 §5.2)."""

    error = "invalid_scope"


class InvalidTarget(OAuthError):
    """A `resource` that is not ours (RFC 8707 §2)."""

    error = "invalid_target"


class AccessDenied(OAuthError):
    """The owner said no (RFC 6749 §4.1.2.1)."""

    error = "access_denied"


class ConsentRequired(OAuthError):
    """`prompt=none`, but the owner is asked every time (OpenID Connect Core §3.1.2.6)."""

    error = "consent_required"


class RequestNotSupported(OAuthError):
    """Request objects are neither read nor fetched (RFC 9101 §10.4, OpenID Connect Core §3.1.2.6)."""

    error = "request_not_supported"


class InvalidToken(OAuthError):
    """An access token that opens nothing (RFC 6750 §3.1)."""

    error = "invalid_token"
    status_code = 401


class InvalidRedirectURI(OAuthError):
    """A redirect URI that no code may be sent to (RFC 7591 §3.2.2)."""

    error = "invalid_redirect_uri"


class InvalidClientMetadata(OAuthError):
    """Client metadata that cannot be registered (RFC 7591 §3.2.2)."""

    error = "invalid_client_metadata"


class BodyTooLarge(InvalidRequest):
    """More than any honest request needs."""

    status_code = 413


class TemporarilyUnavailable(OAuthError):
    """Somebody this server depends on is down; nothing was lost, the same request will do later."""

    error = "temporarily_unavailable"
    status_code = 503

    def __init__(self, description: str, retry_after_seconds: int = 10) -> None:
        super().__init__(description)
        self.retry_after_seconds = retry_after_seconds

    def extra_headers(self) -> Mapping[str, str]:
        """When to come back (RFC 9110 §10.2.3)."""
        return {"Retry-After": str(self.retry_after_seconds)}


class TooManyRequests(TemporarilyUnavailable):
    """Faster than any honest client (RFC 6585 §4)."""

    status_code = 429
