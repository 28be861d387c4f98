"""People who sign in with an account elsewhere, and the apps that they connect."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.settings import Settings
from tests.connector.pages.stand import Person
from tests.flows.conftest import PUBLIC_URL, Host
from tests.flows.google import PROJECT, Google


@dataclass
class Visitor:
    """Somebody with a browser and an app of their own."""

    person: Person
    google: Google
    host: Host

    def sign_in(self, uid: str, page: httpx2.Response | None = None, **changes: Any) -> httpx2.Response:
        page = page or self.person.open("/sign-in")
        return self.person.submit(page, **self.google.sign_in(uid, **changes))

    def connect(self, uid: str) -> dict[str, Any]:
        """From the app's first request to its tokens."""
        self.host.register()
        page = self.person.open(self.host.authorization_url())
        consent = self.person.follow(self.sign_in(uid, page))
        target = self.person.submit(consent, decision="allow").headers["location"]
        return self.host.redeem(parse_qs(urlsplit(target).query)["code"][0])

    def refresh(self, tokens: dict[str, Any]) -> httpx2.Response:
        answer: httpx2.Response = self.host.token(
            grant_type="refresh_token", refresh_token=tokens["refresh_token"]
        )
        return answer


def visit(parts: Vademecum, google: Google) -> Visitor:
    """A browser that was never here, at a server of these parts."""
    http = TestClient(create_app(parts), base_url=PUBLIC_URL, follow_redirects=False)
    return Visitor(Person(http, PUBLIC_URL), google, Host(http))


def firebase_settings(path: Path, **changes: Any) -> Settings:
    values = {
        "state_dir": path,
        "embedder": "none",
        "public_url": PUBLIC_URL,
        "identity": "firebase",
        "firebase_project": PROJECT,
        "firebase_api_key": "web-key",
        "firebase_sdk": "cdn",
        "allowed_emails": ("Ana@example.org",),
    }
    return Settings.model_validate(values | changes)


def restarted(parts: Vademecum, google: Google, **changes: Any) -> Vademecum:
    """The same installation with other settings."""
    settings = firebase_settings(parts.settings.state_dir, **changes)
    return Vademecum(settings, parts.now, parts.monotonic, provider_transport=google.transport())
