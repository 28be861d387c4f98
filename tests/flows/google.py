"""Google at the HTTP boundary: its certificates, its token exchange, and the accounts of one project."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import httpx2
import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

PROJECT = "demo-vademecum"
CERTIFICATES = "/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
KEY_ID = "key-1"


@dataclass
class User:
    """An account; `is_disabled` and deleting it from `Google.users` are what an administrator does."""

    uid: str
    email: str
    is_verified: bool = True
    is_disabled: bool = False
    method: str = "google.com"


@dataclass
class Google:
    """Signs ID tokens and exchanges refresh tokens; `outage` breaks it in one of several ways."""

    now: Callable[[], datetime]
    users: dict[str, User] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    outage: httpx2.Response | Exception | None = None
    down: str = ""
    """The path that the outage is at; everywhere when empty."""
    max_age: int = 3600
    age: int = 0
    """How long a cache on the way has kept the certificates."""
    delay: float = 0.0

    def __post_init__(self) -> None:
        self.signed = itertools.count()
        self.key = rsa.generate_private_key(65537, 2048)

    def add(self, uid: str, email: str, **values: Any) -> User:
        self.users[uid] = User(uid, email, **values)
        return self.users[uid]

    def claims(self, uid: str, **changes: Any) -> dict[str, Any]:
        """What Firebase says of a user who signs in now; None leaves a claim out."""
        user, now = self.users[uid], int(self.now().timestamp())
        claims = {
            "iss": f"https://securetoken.google.com/{PROJECT}",
            "aud": PROJECT,
            "sub": uid,
            "user_id": uid,
            # Two sign-ins of one user in one second would otherwise bring the very same token.
            "number": next(self.signed),
            "auth_time": now,
            "iat": now,
            "exp": now + 3600,
            "email": user.email,
            "email_verified": user.is_verified,
            "firebase": {"sign_in_provider": user.method, "identities": {}},
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        return jwt.encode(claims, self.key, "RS256", headers={"kid": KEY_ID} | headers)

    def sign_in(self, uid: str, **changes: Any) -> dict[str, str]:
        """What the SDK hands to the page."""
        return {
            "id_token": self.sign(self.claims(uid, **changes)),
            "refresh_token": f"refresh-{uid}-0",
        }

    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.requests.append(path)
        time.sleep(self.delay)
        if self.outage is not None and (not self.down or path == self.down):
            if isinstance(self.outage, Exception):
                raise self.outage
            return self.outage
        if path == CERTIFICATES:
            certificates = {KEY_ID: self.certificate()}
            return httpx2.Response(
                200,
                json=certificates,
                headers={"Cache-Control": f"public, max-age={self.max_age}", "Age": str(self.age)},
            )
        if path == "/v1/token" and request.url.host == "securetoken.googleapis.com":
            return self._exchange(request)
        return httpx2.Response(404, json={"error": {"code": 404, "message": "NOT_FOUND"}})

    def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        assert form["grant_type"] == "refresh_token" and request.url.params["key"] == "web-key"
        word, _, rest = form["refresh_token"].partition("-")
        uid, _, number = rest.rpartition("-")
        user = self.users.get(uid)
        if word != "refresh":
            return _error("INVALID_REFRESH_TOKEN")
        if user is None:
            return _error("USER_NOT_FOUND")
        if user.is_disabled:
            return _error("USER_DISABLED")
        body = {
            "id_token": self.sign(self.claims(uid)),
            "refresh_token": f"refresh-{uid}-{int(number) + 1}",
            "user_id": uid,
            "expires_in": "3600",
        }
        return httpx2.Response(200, json=body)

    def certificate(self) -> str:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "securetoken.system.gserviceaccount.com")])
        now = self.now()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=14))
            .sign(self.key, hashes.SHA256())
            .public_bytes(Encoding.PEM)
            .decode()
        )


def _error(message: str) -> httpx2.Response:
    return httpx2.Response(
        400, json={"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    )
