"""Clients whose id is the address of a document, through the whole application and without a network."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.settings import Settings
from oauth.safe_fetch import Fetcher
from tests.connector.pages.stand import Person
from tests.flows.conftest import PUBLIC_URL, Clock, Host
from tests.oauth.web import Web

PINNED = {
    "https://claude.ai/oauth/mcp-oauth-client-metadata": "https://claude.ai/api/mcp/auth_callback",
    "https://claude.ai/oauth/claude-code-client-metadata": "http://localhost:54212/callback",
    "https://chatgpt.com/oauth/client.json": "https://chatgpt.com/connector_platform_oauth_redirect",
    "https://chatgpt.com/oauth/codex/client.json": "http://127.0.0.1:1455/callback",
}
DOCUMENT = "https://app.example/client.json"
CALLBACK = "https://app.example/callback"


def document(**members: object) -> dict[str, object]:
    return {"client_id": DOCUMENT, "client_name": "An app", "redirect_uris": [CALLBACK]} | members


def redeem(host: Host, location: str, redirect_uri: str) -> httpx2.Response:
    answer = host.token(
        grant_type="authorization_code",
        code=parse_qs(urlsplit(location).query)["code"][0],
        redirect_uri=redirect_uri,
        code_verifier=host.verifier,
    )
    assert isinstance(answer, httpx2.Response)
    return answer


@pytest.mark.parametrize(("client_id", "redirect_uri"), PINNED.items())
def test_the_known_hosts_connect_refresh_and_leave_while_their_documents_cannot_be_fetched(
    http: TestClient, web: Web, client_id: str, redirect_uri: str
) -> None:
    name = urlsplit(client_id).hostname or ""
    web.addresses[name] = []
    host, person = Host(http, client_id), Person(http, PUBLIC_URL)
    question = person.consent_page(host.authorization_url(redirect_uri=redirect_uri))
    assert name in question.text and f'class="host">{urlsplit(redirect_uri).hostname}<' in question.text
    is_program = redirect_uri.startswith("http:")
    assert ("A program on the computer you are using" in question.text) is is_program
    assert (f"published by {name}" in question.text) is not is_program
    allowed = person.submit(question, decision="allow").headers["location"]
    assert allowed.startswith(redirect_uri + "?")

    redeemed = redeem(host, allowed, redirect_uri)
    assert redeemed.status_code == 200, redeemed.text
    refresh = {"grant_type": "refresh_token", "refresh_token": redeemed.json()["refresh_token"]}
    refreshed = host.token(**refresh)
    assert refreshed.status_code == 200
    assert host.mcp(refreshed.json()["access_token"], "tools/list").status_code == 200
    revoked = http.post("/revoke", data={"client_id": client_id, "token": refreshed.json()["refresh_token"]})
    assert revoked.status_code == 200
    assert host.mcp(refreshed.json()["access_token"], "tools/list").status_code == 401
    assert web.connected == []


def test_a_document_is_fetched_once_and_serves_when_its_host_is_down(
    http: TestClient, web: Web, clock: Clock
) -> None:
    web.publish(DOCUMENT, document(), cache_control="max-age=600")
    host, person = Host(http, DOCUMENT), Person(http, PUBLIC_URL)
    question = person.consent_page(host.authorization_url(redirect_uri=CALLBACK))
    assert "published by app.example" in question.text
    allowed = person.submit(question, decision="allow").headers["location"]
    assert web.connected == [("93.184.215.14", "app.example")]
    web.answers[DOCUMENT] = httpx2.ConnectError("down")
    clock.advance(seconds=30)
    redeemed = redeem(host, allowed, CALLBACK)
    assert redeemed.status_code == 200
    clock.advance(hours=2)
    refreshed = host.token(grant_type="refresh_token", refresh_token=redeemed.json()["refresh_token"])
    assert refreshed.status_code == 200


@pytest.mark.threat("CI-08")
def test_a_host_that_does_not_answer_is_a_page_that_says_when_to_come_back(
    http: TestClient, web: Web
) -> None:
    host = Host(http, DOCUMENT)
    for failure in (httpx2.ConnectError("down"), httpx2.Response(500), httpx2.Response(403)):
        web.answers[DOCUMENT] = failure
        page = http.get(host.authorization_url(redirect_uri=CALLBACK))
        assert page.status_code == 503 and page.headers["retry-after"] and "location" not in page.headers
        assert page.headers["content-type"].startswith("text/html")
        for path in ("/token", "/revoke"):
            form = {"client_id": DOCUMENT, "grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
            answer = http.post(path, data=form)
            assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
            assert answer.headers["retry-after"]
    web.publish(DOCUMENT, document())
    assert http.get(host.authorization_url(redirect_uri=CALLBACK)).status_code == 303


@pytest.mark.threat("CI-11")
def test_a_document_of_a_program_on_this_computer_is_shown_with_its_host_and_a_warning(
    http: TestClient, web: Web
) -> None:
    redirect_uri = "http://127.0.0.1/callback"
    logo = "https://app.example/logo.png"
    web.publish(DOCUMENT, document(redirect_uris=[redirect_uri], logo_uri=logo, client_name="Claude"))
    host, person = Host(http, DOCUMENT), Person(http, PUBLIC_URL)
    question = person.consent_page(host.authorization_url(redirect_uri="http://127.0.0.1:5050/callback"))
    assert "It describes itself at app.example" in question.text and "unverified" in question.text
    assert "A program on the computer you are using" in question.text
    assert logo not in question.text and len(web.connected) == 1


class Trap:
    """A listener on this machine that nobody may connect to."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                if connection.recv(4) == b"stop":
                    return
                self.connections += 1

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"stop")
        self._thread.join()
        self._socket.close()


@contextmanager
def trap() -> Iterator[Trap]:
    listener = Trap()
    try:
        yield listener
    finally:
        listener.close()


HERE = (
    "127.0.0.1",
    "localhost",
    "x.localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.1",
    "0.0.0.0",  # noqa: S104  a host to be refused
    "app.example",
)


@pytest.mark.threat("CI-01")
@pytest.mark.threat("CI-02")
def test_no_client_id_leads_to_this_machine(settings: Settings, clock: Clock) -> None:
    """The real fetcher, its real transport; only the name `app.example` is made to mean this machine."""

    async def resolve(name: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    parts = Vademecum(settings, clock, clock.monotonic, Fetcher(resolve))
    with trap() as listener, TestClient(create_app(parts), base_url=PUBLIC_URL) as http:
        for name in HERE:
            host = Host(http, f"https://{name}:{listener.port}/client.json")
            page = http.get(host.authorization_url(redirect_uri=CALLBACK), follow_redirects=False)
            assert page.status_code == 400 and "location" not in page.headers, name
            assert "invalid_client" in page.text
            refused = host.token(grant_type="refresh_token", refresh_token="x")
            assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client"), name
            plain = Host(http, f"http://{name}:{listener.port}/client.json")
            assert http.get(plain.authorization_url(), follow_redirects=False).status_code == 400
    parts.database.close()
    assert listener.connections == 0
