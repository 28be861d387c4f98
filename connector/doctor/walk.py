"""The server from outside: the way that Claude, ChatGPT and Codex go, request by request, and where it ends.

Each check is a thing that has kept a host from connecting somewhere.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from connector.doctor import transport
from connector.doctor.report import HOSTS, Check, failed, ok, skipped

PRM = "/.well-known/oauth-protected-resource"
ASM = "/.well-known/oauth-authorization-server"
HOSTED = ("Claude", "ChatGPT")
BROWSER_ORIGIN = "https://claude.ai"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
"""The code challenge of RFC 7636 Appendix B; no code is ever asked for with it."""
IDENTIFIED = (
    (
        "claude",
        "Claude",
        "https://claude.ai/oauth/mcp-oauth-client-metadata",
        "https://claude.ai/api/mcp/auth_callback",
    ),
    (
        "chatgpt",
        "ChatGPT",
        "https://chatgpt.com/oauth/client.json",
        "https://chatgpt.com/connector_platform_oauth_redirect",
    ),
    ("codex", "Codex", "https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1:50321/callback"),
)
"""Hosts that name themselves by a client ID metadata document."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "vademecum doctor", "version": "1"},
    },
}


@dataclass
class Walk:
    """One walk to one server."""

    url: str
    http: httpx2.Client
    now: Callable[[], datetime]
    metadata: dict[str, Any] = field(default_factory=dict)
    registered: list[str] = field(default_factory=list)
    """The client ids of the registrations that it made."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.resource = self.url if parts.path not in ("", "/") else f"{self.origin}/mcp"
        self.path = urlsplit(self.resource).path

    def checks(self) -> Iterator[Check]:
        """Each as soon as it is done; ends early where no host would come further."""
        reached = [*self._transport()]
        yield from reached
        if any(check.result == "failed" and check.name in ("reachable", "tls") for check in reached):
            yield skipped("discovery", "the server cannot be reached")
            return
        yield from self._challenges()
        yield from self._protected_resource()
        yield from self._authorization_server()
        yield from self._registration()
        yield from self._authorization()
        yield from self._token()
        yield from self._cors()
        yield self._unknown_metadata()
        yield self._ready()

    def _transport(self) -> Iterator[Check]:
        parts = urlsplit(self.url)
        yield transport.https(self.url)
        answer, check = transport.reach(self.http, self.resource)
        yield check
        if answer is None:
            return
        if parts.scheme == "https":
            yield transport.certificate(parts.hostname or "", parts.port or 443, self.now())
        yield transport.clock(answer, self.now())
        yield from self._redirects()

    def _redirects(self) -> Iterator[Check]:
        spellings = (self.resource, self.resource.rstrip("/") + "/")
        moved = [url for url in spellings if self._post_mcp(url).is_redirect]
        if moved:
            said = (
                f"{', '.join(moved)} answers with a redirect, after which clients drop the token or the body"
            )
            yield failed("redirects", said, "Pass both spellings to the server as they are.", HOSTS)
        else:
            yield ok("redirects")

    def _post_mcp(self, url: str, **headers: str) -> httpx2.Response:
        accept = {"Accept": "application/json, text/event-stream"}
        return self.http.post(url, json=INITIALIZE, headers=accept | headers)

    def _challenges(self) -> Iterator[Check]:
        answers = {
            "post": (self._post_mcp(self.resource), HOSTS),
            "get": (self.http.get(self.resource), ("Codex",)),
            "head": (self.http.head(self.resource), ()),
        }
        for method, (answer, hosts) in answers.items():
            yield self._challenge(method, answer, hosts)

    def _challenge(self, method: str, answer: httpx2.Response, hosts: Sequence[str]) -> Check:
        name = f"challenge_{method}"
        mend = f"Pass {method.upper()} {self.path} to the server, and its answer back with every header."
        if answer.status_code != 401:
            said = f"{method.upper()} without a token is answered {answer.status_code} instead of 401"
            return failed(name, said, mend, hosts)
        challenge = answer.headers.get("www-authenticate", "")
        if not challenge.lower().startswith("bearer"):
            return failed(name, "the 401 has no WWW-Authenticate: Bearer", mend, hosts)
        found = re.search(r'resource_metadata="([^"]*)"', challenge)
        if found is None:
            return failed(name, "WWW-Authenticate has no resource_metadata", mend, hosts)
        expected = f"{self.origin}{PRM}{self.path}"
        if found.group(1) != expected:
            said = f"resource_metadata is {found.group(1)} instead of {expected}"
            return failed(name, said, f"Set VADEMECUM_PUBLIC_URL={self.origin}", hosts)
        return ok(name)

    def _protected_resource(self) -> Iterator[Check]:
        name = "protected_resource_metadata"
        document = self._document(PRM + self.path)
        if isinstance(document, str):
            yield failed(name, document, f"Pass {PRM}{self.path} to the server.", HOSTS)
            return
        mend = f"Set VADEMECUM_PUBLIC_URL={self.origin}"
        if document.get("resource") != self.resource:
            said = f"resource is {document.get('resource')} and people type {self.resource}"
            yield failed(name, said, mend, HOSTS)
        elif document.get("authorization_servers") != [self.origin]:
            said = f"authorization_servers is {document.get('authorization_servers')}"
            yield failed(name, said, mend, HOSTS)
        else:
            yield ok(name)
        at_root = self._document(PRM)
        if at_root != document:
            said = at_root if isinstance(at_root, str) else f"{PRM} says something else than {PRM}{self.path}"
            yield failed("protected_resource_at_root", said, f"Pass {PRM} to the server.", ("ChatGPT",))
        else:
            yield ok("protected_resource_at_root")

    def _document(self, path: str) -> dict[str, Any] | str:
        """The JSON object at the path, or what is wrong with the answer."""
        answer = self.http.get(self.origin + path)
        if answer.status_code != 200:
            return f"{path} is answered {answer.status_code}"
        try:
            document = answer.json()
        except ValueError:
            return (
                f"{path} is answered with {answer.headers.get('content-type', 'something')} instead of JSON"
            )
        return document if isinstance(document, dict) else f"{path} holds no object"

    def _authorization_server(self) -> Iterator[Check]:
        document = self._document(ASM)
        if isinstance(document, str):
            yield failed("authorization_server_metadata", document, f"Pass {ASM} to the server.", HOSTS)
            return
        self.metadata = document
        mend = f"Set VADEMECUM_PUBLIC_URL={self.origin}, and serve a current version."
        yield self._that(
            "issuer",
            document.get("issuer") == self.origin,
            f"issuer is {document.get('issuer')} instead of {self.origin}",
            mend,
            HOSTS,
        )
        ends = [document.get(f"{end}_endpoint") for end in ("authorization", "token", "registration")]
        elsewhere = [str(end) for end in ends if not str(end).startswith(f"{self.origin}/")]
        yield self._that(
            "endpoints", not elsewhere, f"{', '.join(elsewhere)} is not below {self.origin}", mend, HOSTS
        )
        yield self._that(
            "pkce",
            "S256" in _list(document, "code_challenge_methods_supported"),
            "S256 is not among code_challenge_methods_supported",
            mend,
            HOSTS,
        )
        is_named = document.get("client_id_metadata_document_supported") is True
        is_public = "none" in _list(document, "token_endpoint_auth_methods_supported")
        yield self._that(
            "client_documents",
            is_named and is_public,
            "client ID metadata documents of public clients are not offered",
            mend,
            ("ChatGPT",),
        )
        yield self._that(
            "iss_parameter",
            document.get("authorization_response_iss_parameter_supported") is True,
            "iss is not announced, so that redirects are refused",
            mend,
            ("ChatGPT", "Codex"),
        )
        yield self._that(
            "refresh_tokens",
            "offline_access" in _list(document, "scopes_supported"),
            "offline_access is not among scopes_supported: users are signed out every hour",
            mend,
            ("ChatGPT",),
        )

    @staticmethod
    def _that(name: str, holds: bool, said: str, mend: str, hosts: Sequence[str]) -> Check:
        return ok(name) if holds else failed(name, said, mend, hosts)

    def _registration(self) -> Iterator[Check]:
        name = "registration"
        endpoint = self.metadata.get("registration_endpoint")
        if not isinstance(endpoint, str):
            yield skipped(name, "the metadata names no registration endpoint")
            return
        body = {
            "client_name": "vademecum doctor",
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback", "http://127.0.0.1:50321/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        answer = self.http.post(endpoint, json=body)
        registered = _object(answer)
        client_id = registered.get("client_id")
        mend = "Pass POST /register to the server, with JSON bodies and without a challenge page."
        if answer.status_code != 201 or not isinstance(client_id, str):
            yield failed(name, f"a registration is answered {answer.status_code}", mend, HOSTS)
            return
        self.registered.append(client_id)
        if "client_secret" in registered or registered.get("token_endpoint_auth_method") != "none":
            yield failed(
                name, "a public client is given a secret", "Serve a current version.", ("Claude", "Codex")
            )
        else:
            yield ok(name, f"{client_id} ends by itself unless it is used")

    def _authorization(self) -> Iterator[Check]:
        endpoint = self.metadata.get("authorization_endpoint")
        if not isinstance(endpoint, str):
            yield skipped("authorization", "the metadata names no authorization endpoint")
            return
        clients: list[tuple[str, Sequence[str], str, str]] = [
            (f"authorization_{name}", (host,), client_id, uri) for name, host, client_id, uri in IDENTIFIED
        ]
        clients += [
            ("authorization_registered", HOSTS, client_id, "http://127.0.0.1:49152/callback")
            for client_id in self.registered
        ]
        for name, hosts, client_id, redirect_uri in clients:
            yield self._authorize(name, hosts, endpoint, client_id, redirect_uri)

    def _authorize(self, name: str, hosts: Sequence[str], endpoint: str, client_id: str, uri: str) -> Check:
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": uri,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": secrets.token_urlsafe(16),
            "resource": self.resource,
        }
        answer = self.http.get(endpoint, params=query)
        leads = answer.headers.get("location", "")
        is_page = answer.status_code == 200 and "text/html" in answer.headers.get("content-type", "")
        is_onward = (
            answer.is_redirect and leads.startswith(("/", f"{self.origin}/")) and not leads.startswith("//")
        )
        if is_page or is_onward:
            return ok(name)
        said = f"/authorize of {client_id} is answered {answer.status_code}"
        return failed(
            name, said, "Look for the request id in the server's log; the proxy must pass /authorize.", hosts
        )

    def _token(self) -> Iterator[Check]:
        endpoint = self.metadata.get("token_endpoint")
        if not isinstance(endpoint, str):
            yield skipped("token_errors", "the metadata names no token endpoint")
            return
        form = {"grant_type": "refresh_token", "refresh_token": "none", "client_id": "unknown-to-you"}
        answer = self.http.post(endpoint, data=form)
        if (answer.status_code, _object(answer).get("error")) != (401, "invalid_client"):
            said = f"an unknown client is answered {answer.status_code} without invalid_client"
            yield failed(
                "token_errors", said, "Pass POST /token and its JSON errors through unchanged.", ("Claude",)
            )
        elif "no-store" not in answer.headers.get("cache-control", ""):
            said = "answers with tokens may be cached"
            yield failed("token_errors", said, "Pass Cache-Control through unchanged.", ())
        else:
            yield ok("token_errors")

    def _cors(self) -> Iterator[Check]:
        asked = "authorization, content-type, mcp-protocol-version"
        headers = {"Origin": BROWSER_ORIGIN, "Access-Control-Request-Headers": asked}
        wrong = []
        for path, method in (
            (self.path, "POST"),
            (PRM + self.path, "GET"),
            ("/token", "POST"),
            ("/register", "POST"),
        ):
            answer = self.http.options(
                self.origin + path, headers=headers | {"Access-Control-Request-Method": method}
            )
            allowed = answer.headers.get("access-control-allow-origin")
            names = answer.headers.get("access-control-allow-headers", "").lower()
            if (
                answer.status_code >= 300
                or allowed not in ("*", BROWSER_ORIGIN)
                or "mcp-protocol-version" not in names
            ):
                wrong.append(path)
        exposed = self._post_mcp(self.resource, Origin=BROWSER_ORIGIN).headers.get(
            "access-control-expose-headers", ""
        )
        mend = "Pass OPTIONS to the server; let no header of CORS be added or removed by the proxy."
        if wrong:
            yield failed("cors", f"browsers may not call {', '.join(wrong)}", mend, ())
        elif "www-authenticate" not in exposed.lower():
            yield failed("cors", "browsers may not read WWW-Authenticate", mend, ())
        else:
            yield ok("cors")

    def _unknown_metadata(self) -> Check:
        answer = self.http.get(f"{self.origin}/.well-known/openid-configuration-{secrets.token_hex(4)}")
        if answer.status_code != 404 or "json" not in answer.headers.get("content-type", ""):
            said = f"unknown metadata is answered {answer.status_code} instead of 404 in JSON"
            return failed("unknown_metadata", said, "Pass all of /.well-known/ to the server.", HOSTED)
        return ok("unknown_metadata")

    def _ready(self) -> Check:
        answer = self.http.get(f"{self.origin}/health/ready")
        if answer.status_code != 200:
            return failed(
                "ready", f"/health/ready is answered {answer.status_code}", "Look at the server's log.", HOSTS
            )
        return ok("ready", str(_object(answer).get("version", "")))


def _object(answer: httpx2.Response) -> Mapping[str, Any]:
    try:
        value = json.loads(answer.content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _list(document: Mapping[str, Any], member: str) -> list[Any]:
    value = document.get(member)
    return value if isinstance(value, list) else []
