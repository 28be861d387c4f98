"""Sign-in with any OpenID Connect issuer: code, PKCE, state and nonce; renewal by the issuer's refresh token.

OpenID Connect Core §3.1, RFC 7636, RFC 9207. Authlib's client integrations speak through other HTTP
libraries, so the two requests are made here; its ID token rules are used as they are.
"""

import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from connector.identity.oidc_tokens import IdTokenVerifier, Issuer, discover
from connector.identity.provider import (
    AccountEnded,
    Browser,
    Identity,
    ProviderUnavailable,
    SignInRefused,
)
from connector.identity.provider_http import Answer, ProviderHttp
from connector.identity.published import Published
from oauth.keys import derive
from oauth.records import Records, Value

log = logging.getLogger(__name__)

KIND = "oidc_login"
LIFETIME = timedelta(minutes=10)
CALLBACK_PATH = "/login/oidc/callback"
GOOGLE = "https://accounts.google.com"
MAX_SIGN_IN_AGE = timedelta(minutes=5)
MAX_PARAMETER_CHARACTERS = 4096


@dataclass(frozen=True)
class OidcClient:
    """What the issuer calls this server."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    name: str
    """What the issuer is called on the sign-in page; empty for its host."""
    prompt: tuple[str, ...]
    redirect_uri: str


@dataclass(frozen=True)
class Login:
    """A way to the issuer that a browser has set out on; its secrets are derived from `state`, not kept."""

    state: str = field(repr=False)
    browser: str
    pending_id: str


class OidcProvider:
    """Knows people by one issuer's `sub`."""

    name = "oidc"
    is_renewable = True
    form_template = "providers/oidc.html"

    def __init__(
        self,
        client: OidcClient,
        records: Records,
        state_key: bytes,
        now: Callable[[], datetime],
        http: ProviderHttp,
        is_set_up: Callable[[], bool],
    ) -> None:
        self.client = client
        self.records = records
        self.now = now
        self.is_set_up = is_set_up
        self._http = http
        self._key = derive(state_key, "openid connect logins")
        url = client.issuer.rstrip("/") + "/.well-known/openid-configuration"
        self._discovery = Published(http, url, lambda found: discover(found, client.issuer), now)
        self._verifier = IdTokenVerifier(client.issuer, client.client_id, http, now)

    @property
    def issuer(self) -> str:
        """Who names the people."""
        return self.client.issuer

    def form_fields(self) -> Mapping[str, object]:
        """What the button says."""
        host = self.client.issuer.partition("://")[2].partition("/")[0]
        return {"issuer_name": self.client.name or host}

    def authenticate(self, form: Mapping[str, str], browser: Browser) -> Identity:
        """Nobody signs in by this server's own form; `finish` does it."""
        raise SignInRefused("not_accepted")

    def begin(self, browser: str, pending_id: str) -> str:
        """The issuer's address that this browser goes to (OpenID Connect Core §3.1.2.1).

        Raises:
            ProviderUnavailable: its endpoints are not known.
        """
        issuer = self._discovery.get()
        state = secrets.token_urlsafe(32)
        value = {"browser": browser, "pending_id": pending_id}
        self.records.create(KIND, _digest(state), value, self.now() + LIFETIME)
        parameters = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.client.redirect_uri,
            "state": state,
            "nonce": self._derived("nonce", state),
            "code_challenge": create_s256_code_challenge(self._derived("verifier", state)),
            "code_challenge_method": "S256",
            "max_age": str(int(MAX_SIGN_IN_AGE.total_seconds())),
            **self._offline(issuer),
        }
        separator = "&" if "?" in issuer.authorization_endpoint else "?"
        return issuer.authorization_endpoint + separator + urlencode(parameters)

    def find_login(self, state: str) -> Login | None:
        """The login that the issuer answers; whose browser it is, is for the caller to compare."""
        value = self.records.get(KIND, _digest(state))
        return None if value is None else Login(state, value["browser"], value["pending_id"])

    def finish(self, login: Login, parameters: Mapping[str, str]) -> Identity:
        """Exchanges the code, once; the state is spent last, so that an outage costs nothing.

        Raises:
            SignInRefused: the issuer said no, or what it gave does not hold.
            ProviderUnavailable: the issuer does not answer.
        """
        issuer, code = self._discovery.get(), parameters.get("code", "")
        # RFC 9207 §2.4: another issuer's answer is not for us.
        iss = parameters.get("iss", issuer.issuer if not issuer.sends_iss else "")
        if iss != issuer.issuer or not 0 < len(code) <= MAX_PARAMETER_CHARACTERS:
            raise SignInRefused("not_accepted")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.client.redirect_uri,
            "code_verifier": self._derived("verifier", login.state),
        }
        answer = self._token(issuer, form)
        if answer.status != 200:
            raise self._refused(answer, SignInRefused("not_accepted"))
        nonce = self._derived("nonce", login.state)
        identity = self._identity(issuer, answer.body, nonce)
        if self.records.take(KIND, _digest(login.state)) is None:
            raise SignInRefused("not_accepted")
        return identity

    def renew(self, identity: Identity) -> Identity:
        """By the refresh token; where the issuer gave none, there is nothing to ask."""
        if identity.refresh_token is None:
            return identity
        issuer = self._discovery.get()
        form = {"grant_type": "refresh_token", "refresh_token": identity.refresh_token}
        answer = self._token(issuer, form)
        if answer.status != 200:
            raise self._refused(answer, AccountEnded())
        renewed = answer.body.get("refresh_token")
        kept = renewed if isinstance(renewed, str) else identity.refresh_token
        if not isinstance(answer.body.get("id_token"), str):
            return replace(identity, refresh_token=kept)
        try:
            found = self._identity(issuer, answer.body, None)
        except SignInRefused:
            raise AccountEnded from None
        if found.subject != identity.subject:
            raise AccountEnded
        return replace(found, refresh_token=kept)

    def _offline(self, issuer: Issuer) -> dict[str, str]:
        """Each has its own way to be asked for a refresh token, and for a choice of account."""
        if issuer.issuer == GOOGLE:
            prompt = self.client.prompt or ("consent", "select_account")
            return {"scope": "openid email", "access_type": "offline", "prompt": " ".join(prompt)}
        scope = "openid email" + " offline_access" * ("offline_access" in issuer.scopes_supported)
        return {"scope": scope, "prompt": " ".join(self.client.prompt or ("login",))}

    def _token(self, issuer: Issuer, form: Mapping[str, str]) -> Answer:
        """The token endpoint (RFC 6749 §2.3.1, §3.2)."""
        client_id, secret = self.client.client_id, self.client.client_secret
        if secret is None:
            return self._http.post(issuer.token_endpoint, {**form, "client_id": client_id})
        if issuer.takes_basic:
            auth = (quote(client_id, safe=""), quote(secret, safe=""))
            return self._http.post(issuer.token_endpoint, form, auth)
        return self._http.post(
            issuer.token_endpoint, {**form, "client_id": client_id, "client_secret": secret}
        )

    def _identity(self, issuer: Issuer, tokens: Mapping[str, Any], nonce: str | None) -> Identity:
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str) or not isinstance(access_token, str):
            raise SignInRefused("not_accepted")
        claims = self._verifier.verify(issuer, id_token, access_token, nonce)
        auth_time = claims.get("auth_time")
        if nonce is not None and isinstance(auth_time, int | float):
            age = self.now().timestamp() - auth_time
            if age > MAX_SIGN_IN_AGE.total_seconds():
                raise SignInRefused("not_accepted")
        if "email" not in claims and issuer.userinfo_endpoint:
            claims = {**claims, **self._userinfo(issuer, access_token, str(claims["sub"]))}
        email = claims.get("email")
        email = email if isinstance(email, str) else ""
        refresh_token = tokens.get("refresh_token")
        return Identity(
            provider=self.name,
            issuer=issuer.issuer,
            subject=str(claims["sub"]),
            label=email or str(claims["sub"]),
            # Amazon Cognito writes the word.
            verified_email=email if claims.get("email_verified") in (True, "true") else "",
            refresh_token=refresh_token if isinstance(refresh_token, str) else None,
        )

    def _userinfo(self, issuer: Issuer, access_token: str, subject: str) -> Value:
        """Where the issuer keeps the e-mail address out of ID tokens (OpenID Connect Core §5.3.2)."""
        headers = {"Authorization": f"Bearer {access_token}"}
        answer = self._http.get(issuer.userinfo_endpoint, headers)
        if answer.status != 200 or answer.body.get("sub") != subject:
            return {}
        return {name: answer.body[name] for name in ("email", "email_verified") if name in answer.body}

    def _refused(self, answer: Answer, ended: Exception) -> Exception:
        """Only `invalid_grant` is about the person; anything else is a mistake in the set-up."""
        reason = str(answer.body.get("error"))
        if reason == "invalid_grant":
            return ended
        log.error("provider.misconfigured", extra={"provider": self.name, "reason": reason[:64]})
        return ProviderUnavailable()

    def _derived(self, purpose: str, state: str) -> str:
        mac = hmac.digest(self._key, f"{purpose}\0{state}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
