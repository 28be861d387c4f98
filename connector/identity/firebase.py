"""Sign-in with Firebase: Google's pages and SDK do it in the browser, which posts what it was given here.

The ID token says who it is, once. The refresh token is exchanged at once: that proves that the two belong
together, and what comes back asks Google later whether the account still lives.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from connector.identity.firebase_tokens import (
    CERTIFICATES_URL,
    MAX_SIGN_IN_AGE,
    IdToken,
    IdTokenVerifier,
    parse_certificates,
)
from connector.identity.provider import (
    AccountEnded,
    Browser,
    Identity,
    ProviderUnavailable,
    SignInRefused,
)
from connector.identity.provider_http import ProviderHttp
from connector.identity.published import Published
from oauth.records import Records

log = logging.getLogger(__name__)

USED_KIND = "id_token"
EXCHANGE_URL = "https://securetoken.googleapis.com/v1/token"
ENDED = frozenset(
    ("USER_DISABLED", "USER_NOT_FOUND", "TOKEN_EXPIRED", "INVALID_REFRESH_TOKEN", "MISSING_REFRESH_TOKEN")
)
"""Answers about the account; any other refusal is a mistake in the set-up, and costs nobody a login."""
MAX_REFRESH_TOKEN_CHARACTERS = 16 * 1024


@dataclass(frozen=True)
class FirebaseProject:
    """What the operator says of the project; the API key names it and is no secret."""

    id: str
    api_key: str
    auth_domain: str
    methods: tuple[str, ...]
    emulator_host: str = ""

    @property
    def exchange_url(self) -> str:
        """Where refresh tokens are exchanged."""
        url = (
            f"http://{self.emulator_host}/{EXCHANGE_URL.partition('//')[2]}"
            if self.emulator_host
            else EXCHANGE_URL
        )
        return f"{url}?key={self.api_key or 'emulator'}"


class FirebaseProvider:
    """Knows people by their Firebase uid in one project."""

    name = "firebase"
    is_renewable = True
    form_template = "providers/firebase.html"

    def __init__(
        self,
        project: FirebaseProject,
        records: Records,
        now: Callable[[], datetime],
        http: ProviderHttp,
        is_set_up: Callable[[], bool],
        sdk_urls: tuple[str, ...],
    ) -> None:
        self.project = project
        self.records = records
        self.now = now
        self.is_set_up = is_set_up
        self._http = http
        self._sdk_urls = sdk_urls
        certificates = Published(http, CERTIFICATES_URL, parse_certificates, now)
        self._verifier = IdTokenVerifier(
            project=project.id,
            methods=frozenset(project.methods),
            certificates=None if project.emulator_host else certificates,
            now=now,
        )

    @property
    def issuer(self) -> str:
        """Who names the people: Firebase, for this project."""
        return self._verifier.issuer

    def form_fields(self) -> Mapping[str, object]:
        """What the page's script starts the SDK with."""
        project = self.project
        config = {
            "apiKey": project.api_key or "emulator",
            "authDomain": project.auth_domain or f"{project.id}.firebaseapp.com",
            "projectId": project.id,
        }
        return {
            "firebase_config": {"app": config, "emulator": project.emulator_host},
            "firebase_methods": project.methods,
            "firebase_sdk_urls": self._sdk_urls,
        }

    def authenticate(self, form: Mapping[str, str], browser: Browser) -> Identity:
        """Who the ID token names. Google is asked first and the token spent last: an outage costs nothing."""
        id_token = form.get("id_token", "")
        verified = self._verifier.verify(id_token)
        if self.now() - verified.auth_time > MAX_SIGN_IN_AGE:
            raise SignInRefused("not_accepted")
        try:
            identity = self._exchange(form.get("refresh_token", ""), verified.subject)
        except AccountEnded:
            raise SignInRefused("not_accepted") from None
        self._spend(id_token, verified)
        return identity

    def renew(self, identity: Identity) -> Identity:
        """Exchanges the refresh token anew."""
        return self._exchange(identity.refresh_token or "", identity.subject)

    def _spend(self, id_token: str, verified: IdToken) -> None:
        digest = hashlib.sha256(id_token.encode()).hexdigest()
        if not self.records.create(USED_KIND, digest, {}, verified.expires_at):
            log.warning("id_token.replayed", extra={"provider": self.name})
            raise SignInRefused("not_accepted")

    def _exchange(self, refresh_token: str, subject: str) -> Identity:
        if not 0 < len(refresh_token) <= MAX_REFRESH_TOKEN_CHARACTERS:
            raise AccountEnded
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        answer = self._http.post(self.project.exchange_url, form)
        if answer.status != 200:
            raise self._refused(answer.body)
        id_token, next_token = answer.body.get("id_token"), answer.body.get("refresh_token")
        if not isinstance(id_token, str) or not isinstance(next_token, str):
            raise ProviderUnavailable
        try:
            token = self._verifier.verify(id_token)
        except SignInRefused:
            # Google's own answer: either the clock here is wrong, or a method has been switched off.
            log.warning("id_token.unexpected", extra={"provider": self.name})
            raise AccountEnded from None
        if token.subject != subject:
            raise AccountEnded
        return replace(self._identity(token), refresh_token=next_token)

    def _identity(self, token: IdToken) -> Identity:
        return Identity(
            provider=self.name,
            issuer=self.issuer,
            subject=token.subject,
            label=token.email or token.subject,
            verified_email=token.email if token.is_email_verified else "",
        )

    def _refused(self, body: Mapping[str, object]) -> Exception:
        error = body.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        reason = str(message).partition(" ")[0]
        if reason in ENDED:
            return AccountEnded()
        log.error("provider.misconfigured", extra={"provider": self.name, "reason": reason[:64]})
        return ProviderUnavailable()
