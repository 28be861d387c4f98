"""An OpenID Connect issuer at the HTTP boundary, which gives whatever a test wants it to give."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey

ISSUER = "https://idp.example"
CLIENT_ID = "vademecum"


@dataclass
class Issuer:
    """Signs whoever is asked for in; `metadata`, `claims` and `answers` change what it says."""

    now: Callable[[], datetime]
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    """Of the next ID tokens; None leaves a claim out."""
    answers: dict[str, httpx2.Response | Exception] = field(default_factory=dict)
    """By path, in place of the right ones."""
    requests: list[str] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    subject: str = "sub-ana"
    gives_refresh_token: bool = True
    generation: int = 0

    def __post_init__(self) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": "k1", "use": "sig"}, private=True)

    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self._answer)

    def consent(self, url: str) -> dict[str, str]:
        """The person signs in at this authorization address; what the issuer sends back with the browser."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"], "iss": ISSUER}

    def id_token(self, nonce: str | None, **header: Any) -> str:
        now = int(self.now().timestamp())
        claims = {
            "iss": ISSUER,
            "aud": CLIENT_ID,
            "sub": self.subject,
            "exp": now + 300,
            "iat": now,
            "auth_time": now,
            "nonce": nonce,
            "email": "ana@example.org",
            "email_verified": True,
        }
        said = {name: value for name, value in (claims | self.claims).items() if value is not None}
        return jwt.encode({"alg": "ES256", "kid": "k1"} | header, said, self.key)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.requests.append(path)
        prepared = self.answers.get(path)
        if isinstance(prepared, Exception):
            raise prepared
        if prepared is not None:
            return prepared
        if path == "/.well-known/openid-configuration":
            return httpx2.Response(200, json=self._metadata(), headers={"Cache-Control": "max-age=600"})
        if path == "/jwks":
            return httpx2.Response(200, json={"keys": [self.key.as_dict(private=False)]})
        if path == "/token":
            return self._token(request)
        return httpx2.Response(404, json={})

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/jwks",
            "scopes_supported": ["openid", "email", "offline_access"],
            "authorization_response_iss_parameter_supported": True,
        } | self.metadata

    def _token(self, request: httpx2.Request) -> httpx2.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        self.forms.append(form | {"authorization": request.headers.get("authorization", "")})
        nonce = None
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
            if asked is None or asked["code_challenge"] != base64.urlsafe_b64encode(challenge).decode()[:-1]:
                return httpx2.Response(400, json={"error": "invalid_grant"})
            nonce = asked["nonce"]
        elif form["refresh_token"] != f"rt-{self.generation}":
            return httpx2.Response(400, json={"error": "invalid_grant"})
        self.generation += 1
        body = {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(nonce)}
        if self.gives_refresh_token:
            body["refresh_token"] = f"rt-{self.generation}"
        return httpx2.Response(200, json=body)
