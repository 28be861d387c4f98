"""Proof Key for Code Exchange (RFC 7636), S256 only, for every client (OAuth 2.1 §7.5)."""

import hmac
import re

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from oauth.errors import InvalidGrant, InvalidRequest

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def check_challenge(code_challenge: str | None, code_challenge_method: str | None) -> str:
    """The challenge of an authorization request (§4.3).

    Raises:
        InvalidRequest: no challenge, not the 43 characters of a SHA-256, or a method other than `S256`; a
            missing method would mean `plain`.
    """
    if code_challenge is None or not _CHALLENGE.fullmatch(code_challenge):
        raise InvalidRequest("code_challenge must be the 43 characters of an S256 challenge")
    if code_challenge_method != "S256":
        raise InvalidRequest("code_challenge_method must be S256")
    return code_challenge


def verify(code_verifier: str | None, code_challenge: str) -> None:
    """Compares the verifier of a token request with the challenge (§4.6).

    Raises:
        InvalidGrant: missing, malformed (§4.1) or not the one that was hashed.
    """
    if code_verifier is None or not _VERIFIER.fullmatch(code_verifier):
        raise InvalidGrant("code_verifier is missing or malformed")
    expected: str = create_s256_code_challenge(code_verifier)
    if not hmac.compare_digest(expected, code_challenge):
        raise InvalidGrant("code_verifier does not match the code_challenge")
