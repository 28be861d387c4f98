"""A real server behind a proxy that spoils one answer: the doctor names the fault and whom it stops."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from connector.app import utc_now
from connector.commands.doctor import walked
from connector.doctor.report import HOSTS, Check, is_healthy, verdicts
from tests.processes import Server, free_port, running

Spoil = Callable[[httpx2.Request, httpx2.Response], httpx2.Response]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(Server(tmp_path_factory.mktemp("doctor") / "state")) as started:
        yield started


class SpoilingProxy(httpx2.HTTPTransport):
    """Passes requests on, and what `spoil` makes of the answers back."""

    def __init__(self, spoil: Spoil) -> None:
        super().__init__()
        self._spoil = spoil

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        answer.read()
        return self._spoil(request, answer)


def walk(server: Server, spoil: Spoil) -> dict[str, Check]:
    http = httpx2.Client(transport=SpoilingProxy(spoil), timeout=10)
    return {check.name: check for check in walked(f"{server.url}/mcp", http)}


def unspoiled(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
    return answer


def at(path: str, method: str | None, change: Callable[[httpx2.Response], httpx2.Response]) -> Spoil:
    """Spoils the answers of one path."""

    def spoil(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
        here = request.url.path == path and method in (None, request.method)
        return change(answer) if here else answer

    return spoil


def status(code: int, **headers: str) -> Callable[[httpx2.Response], httpx2.Response]:
    def change(answer: httpx2.Response) -> httpx2.Response:
        kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return httpx2.Response(code, headers=kept | headers, content=answer.content)

    return change


def without(header: str) -> Callable[[httpx2.Response], httpx2.Response]:
    def change(answer: httpx2.Response) -> httpx2.Response:
        kept = [(name, value) for name, value in answer.headers.items() if name != header]
        return httpx2.Response(answer.status_code, headers=kept, content=answer.content)

    return change


def header(name: str, value: str) -> Callable[[httpx2.Response], httpx2.Response]:
    def change(answer: httpx2.Response) -> httpx2.Response:
        return status(answer.status_code, **{name: value})(answer)

    return change


def members(**changed: object) -> Callable[[httpx2.Response], httpx2.Response]:
    def change(answer: httpx2.Response) -> httpx2.Response:
        return httpx2.Response(answer.status_code, json=answer.json() | changed)

    return change


def page(answer: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(403, headers={"content-type": "text/html"}, content=b"<h1>Are you human?</h1>")


PRM = "/.well-known/oauth-protected-resource"
ASM = "/.well-known/oauth-authorization-server"


def test_a_healthy_server_would_be_connected_by_every_host(server: Server) -> None:
    checks = walk(server, unspoiled)
    assert is_healthy(checks.values()), [check for check in checks.values() if check.result == "failed"]
    assert verdicts([*checks.values()]) == {host: [] for host in HOSTS}
    assert {check.name for check in checks.values() if check.result == "warning"} == {"https"}


@pytest.mark.parametrize(
    ("spoil", "name", "hosts"),
    [
        (at("/mcp", "POST", status(308, location="/mcp/")), "redirects", HOSTS),
        (at("/mcp/", "POST", status(301, location="/mcp")), "redirects", HOSTS),
        (at("/mcp", "POST", status(200)), "challenge_post", HOSTS),
        (at("/mcp", "GET", status(405)), "challenge_get", ("Codex",)),
        (at("/mcp", "HEAD", status(404)), "challenge_head", ()),
        (at("/mcp", "POST", without("www-authenticate")), "challenge_post", HOSTS),
        (at("/mcp", "POST", header("www-authenticate", "Bearer")), "challenge_post", HOSTS),
        (
            at("/mcp", "POST", header("www-authenticate", f'Bearer resource_metadata="{PRM}/mcp"')),
            "challenge_post",
            HOSTS,
        ),
        (at(PRM + "/mcp", None, status(404)), "protected_resource_metadata", HOSTS),
        (at(PRM + "/mcp", None, page), "protected_resource_metadata", HOSTS),
        (at(PRM + "/mcp", "GET", members(resource="http://127.0.0.1")), "protected_resource_metadata", HOSTS),
        (at(PRM, None, status(401)), "protected_resource_at_root", ("ChatGPT",)),
        (at(ASM, None, page), "authorization_server_metadata", HOSTS),
        (at(ASM, None, members(issuer="https://elsewhere.example")), "issuer", HOSTS),
        (at(ASM, None, members(token_endpoint="https://elsewhere.example/token")), "endpoints", HOSTS),
        (at(ASM, None, members(code_challenge_methods_supported=["plain"])), "pkce", HOSTS),
        (
            at(ASM, None, members(client_id_metadata_document_supported=False)),
            "client_documents",
            ("ChatGPT",),
        ),
        (
            at(ASM, None, members(authorization_response_iss_parameter_supported=False)),
            "iss_parameter",
            ("ChatGPT", "Codex"),
        ),
        (at(ASM, None, members(scopes_supported=["memory:read"])), "refresh_tokens", ("ChatGPT",)),
        (at("/register", "POST", page), "registration", HOSTS),
        (at("/register", "POST", members(client_secret="s")), "registration", ("Claude", "Codex")),
        (at("/token", "POST", page), "token_errors", ("Claude",)),
        (at("/token", "POST", header("cache-control", "public")), "token_errors", ()),
        (at("/mcp", "OPTIONS", without("access-control-allow-headers")), "cors", ()),
        (at("/token", "OPTIONS", status(405)), "cors", ()),
        (at("/mcp", None, without("access-control-expose-headers")), "cors", ()),
        (at("/health/ready", None, status(503)), "ready", HOSTS),
        (at("/mcp", None, header("date", "Tue, 01 Dec 2020 00:00:00 GMT")), "clock_difference", HOSTS),
    ],
)
def test_each_fault_is_found_by_its_name_and_the_hosts_that_it_stops(
    server: Server, spoil: Spoil, name: str, hosts: tuple[str, ...]
) -> None:
    failed = {check.name: check for check in walk(server, spoil).values() if check.result == "failed"}
    assert name in failed
    assert failed[name].hosts == hosts
    assert failed[name].said and failed[name].mend


@pytest.mark.parametrize(
    ("client", "name", "host"),
    [
        ("https://claude.ai/", "authorization_claude", "Claude"),
        ("https://chatgpt.com/oauth/client.json", "authorization_chatgpt", "ChatGPT"),
        ("https://chatgpt.com/oauth/codex", "authorization_codex", "Codex"),
    ],
)
def test_a_host_that_is_turned_away_at_the_door_is_named(
    server: Server, client: str, name: str, host: str
) -> None:
    def spoil(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
        is_its_own = request.url.params.get("client_id", "").startswith(client)
        return page(answer) if request.url.path == "/authorize" and is_its_own else answer

    checks = [*walk(server, spoil).values()]
    assert [check.name for check in checks if check.result == "failed"] == [name]
    assert verdicts(checks) == {each: [name] if each == host else [] for each in HOSTS}


def test_unknown_metadata_behind_a_login_is_found(server: Server) -> None:
    def spoil(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
        return page(answer) if "openid-configuration-" in request.url.path else answer

    assert walk(server, spoil)["unknown_metadata"].result == "failed"


def test_a_server_that_is_not_there_is_found(tmp_path: Path) -> None:
    checks = {check.name: check for check in walked(f"http://127.0.0.1:{free_port()}/mcp")}
    assert checks["reachable"].result == "failed" and checks["reachable"].hosts == HOSTS
    assert set(checks) == {"https", "reachable", "discovery"}


def test_plain_http_on_another_machine_is_refused_by_every_host() -> None:
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: httpx2.Response(401)))
    checks = {check.name: check for check in walked("http://memory.example.org/mcp", http)}
    assert checks["https"].hosts == HOSTS


def test_the_command_removes_what_it_registered_and_exits_by_its_finding(server: Server) -> None:
    report = json.loads(server.run("doctor", server.url, "--json"))
    assert report["healthy"] and report["hosts"] == {host: [] for host in HOSTS}
    with closing(sqlite3.connect(server.state_dir / "vademecum.db")) as connection:
        left = connection.execute("SELECT value FROM records WHERE kind = 'client' ORDER BY expires_at DESC")
        registered = {
            check["said"].split()[0] for check in report["checks"] if check["name"] == "registration"
        }
        assert not registered & {json.loads(value)["client_id"] for (value,) in left}
    with pytest.raises(AssertionError):
        server.run("doctor", f"http://127.0.0.1:{free_port()}")


def test_the_tolerated_difference_of_clocks_is_two_minutes(server: Server) -> None:
    def spoil(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
        there = utc_now() - timedelta(seconds=90)
        return header("date", f"{there:%a, %d %b %Y %H:%M:%S} GMT")(answer)

    assert walk(server, spoil)["clock_difference"].result == "ok"
