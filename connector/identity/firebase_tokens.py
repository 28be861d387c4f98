"""Firebase ID tokens, checked as Firebase's "Verify ID tokens" asks, and more strictly where that is vague.

By PyJWT for the signature; the times are compared here, with the clock that everything else goes by.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import load_pem_x509_certificate
from jwt.types import Options

from connector.identity.provider import SignInRefused
from connector.identity.published import Published, find_key

CERTIFICATES_URL = "https://www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
ISSUER_PREFIX = "https://securetoken.google.com/"
ALGORITHM = "RS256"
CLOCK_SKEW = timedelta(seconds=60)
MAX_SIGN_IN_AGE = timedelta(minutes=5)
MAX_TOKEN_CHARACTERS = 16 * 1024
MAX_SUBJECT_CHARACTERS = 128
SIGN_IN_PROVIDERS = {"google": "google.com", "password": "password"}
"""Firebase's names for the methods that a setting switches on; anonymous and custom ones are never good."""
_REQUIRED = ["iss", "aud", "sub", "exp", "iat", "auth_time"]

Certificates = Published[Mapping[str, RSAPublicKey]]


@dataclass(frozen=True)
class IdToken:
    """A verified ID token, as far as it matters here."""

    subject: str
    email: str
    is_email_verified: bool
    auth_time: datetime
    expires_at: datetime


def parse_certificates(document: Mapping[str, Any]) -> Mapping[str, RSAPublicKey]:
    """Google's X.509 certificates by key id.

    Raises:
        ValueError: there is none, or one that is no RSA certificate.
    """
    keys = {}
    for key_id, certificate in document.items():
        key = load_pem_x509_certificate(certificate.encode()).public_key()
        if not isinstance(key, RSAPublicKey):
            raise ValueError("not an RSA key")
        keys[key_id] = key
    if not keys:
        raise ValueError("no certificate")
    return keys


@dataclass(frozen=True)
class IdTokenVerifier:
    """Verifies the ID tokens of one Firebase project."""

    project: str
    methods: frozenset[str]
    """Keys of `SIGN_IN_PROVIDERS`."""
    certificates: Certificates | None
    """None for the emulator, whose tokens are unsigned."""
    now: Callable[[], datetime]

    @property
    def issuer(self) -> str:
        """Who signs for this project."""
        return ISSUER_PREFIX + self.project

    def verify(self, id_token: str) -> IdToken:
        """The token, if it is good at this moment.

        Raises:
            SignInRefused: it is not.
            ProviderUnavailable: Google's certificates cannot be had.
        """
        if len(id_token) > MAX_TOKEN_CHARACTERS:
            raise SignInRefused("not_accepted")
        try:
            claims = self._claims(id_token)
        except (jwt.InvalidTokenError, ValueError, TypeError, RecursionError):
            raise SignInRefused("not_accepted") from None
        return self._check(claims)

    def _claims(self, id_token: str) -> Mapping[str, Any]:
        """The claims of a token of this project, whose times are still to be judged."""
        header = jwt.get_unverified_header(id_token)
        if "crit" in header:
            raise ValueError("no critical extension is understood (RFC 7515 §4.1.11)")
        options: Options = {
            "require": _REQUIRED,
            "strict_aud": True,
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        }
        expected: dict[str, Any] = {"audience": self.project, "issuer": self.issuer}
        if self.certificates is None:
            if header.get("alg") != "none" or not id_token.endswith("."):
                raise ValueError("the emulator does not sign")
            # Only the signature goes unchecked: PyJWT would leave out the claims with it.
            options |= {"verify_signature": False, "verify_aud": True, "verify_iss": True, "verify_sub": True}
            return jwt.decode(id_token, options=options, **expected)
        key_id = header.get("kid")
        key = find_key(self.certificates, key_id) if isinstance(key_id, str) else None
        if key is None:
            raise ValueError("unknown key")
        return jwt.decode(id_token, key, algorithms=[ALGORITHM], options=options, **expected)

    def _check(self, claims: Mapping[str, Any]) -> IdToken:
        now = self.now()
        issued_at, auth_time, expires_at = (_moment(claims[name]) for name in ("iat", "auth_time", "exp"))
        subject, firebase = claims["sub"], claims.get("firebase")
        firebase = firebase if isinstance(firebase, dict) else {}
        method = firebase.get("sign_in_provider")
        is_good = (
            isinstance(subject, str)
            and 1 <= len(subject) <= MAX_SUBJECT_CHARACTERS
            and now < expires_at
            and max(issued_at, auth_time) <= now + CLOCK_SKEW
            and method in {SIGN_IN_PROVIDERS[name] for name in self.methods}
            # Identity Platform's tenants have users of their own, and nobody here said which.
            and "tenant" not in firebase
        )
        if not is_good:
            raise SignInRefused("not_accepted")
        email = claims.get("email")
        return IdToken(
            subject=subject,
            email=email if isinstance(email, str) else "",
            is_email_verified=claims.get("email_verified") is True,
            auth_time=auth_time,
            expires_at=expires_at,
        )


def _moment(seconds: object) -> datetime:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise SignInRefused("not_accepted")
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise SignInRefused("not_accepted") from None
