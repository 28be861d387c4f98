"""HTTP: methods, media types, sizes, CORS, and odd bytes."""

import asyncio

import httpx2
import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Scope

from oauth.routes import routes
from oauth.server import AuthorizationServer
from tests.oauth.stand import VERIFIER, Host, error

PROGRAMS = ["/token", "/register", "/revoke"]
DOCUMENTS = ["/jwks.json", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration/mcp"]
FORM = "application/x-www-form-urlencoded"


def send(http: TestClient, body: bytes, content_type: str = FORM, path: str = "/token") -> httpx2.Response:
    return http.post(path, content=body, headers={"Content-Type": content_type})


@pytest.mark.threat("TK-01")
@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_405(http: TestClient, path: str, method: str) -> None:
    response = http.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert method == "HEAD" or error(response) == (405, "invalid_request")


@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_are_read_by_get_and_head(http: TestClient, path: str) -> None:
    assert http.get(path).headers["content-type"] == "application/json"
    assert http.head(path).status_code == 200
    assert error(http.post(path)) == (405, "invalid_request")


@pytest.mark.threat("TK-01")
def test_parameters_in_the_url_are_not_read(host: Host) -> None:
    form = {"Content-Type": FORM}
    query = f"grant_type=authorization_code&client_id={host.client_id}&code={host.code()}"
    response = host.http.post(f"/token?{query}&code_verifier={VERIFIER}", headers=form)
    assert error(response) == (400, "invalid_request")
    response = host.http.post(f"/revoke?token=x&client_id={host.client_id}", headers=form)
    assert error(response) == (401, "invalid_client")


@pytest.mark.threat("TK-02")
@pytest.mark.parametrize("path", ["/token", "/revoke"])
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain", "multipart/form-data; boundary=x", "", "x-www-form-urlencoded"],
)
def test_only_forms_are_read(http: TestClient, path: str, content_type: str) -> None:
    assert error(send(http, b"grant_type=refresh_token", content_type, path)) == (400, "invalid_request")


@pytest.mark.threat("TK-02")
def test_two_media_types_are_refused(http: TestClient) -> None:
    headers = [("Content-Type", FORM), ("Content-Type", "application/json")]
    assert error(http.post("/token", content=b"grant_type=x", headers=headers)) == (400, "invalid_request")


def test_a_charset_beside_the_media_type_is_fine(host: Host) -> None:
    body = b"grant_type=password&client_id=" + host.client_id.encode()
    assert error(send(host.http, body, FORM + "; charset=UTF-8")) == (400, "unsupported_grant_type")


@pytest.mark.threat("PP-01")
@pytest.mark.threat("TK-02")
@pytest.mark.parametrize(
    "value",
    [
        b"%ff%fe",
        b"%00",
        b"%ed%a0%80",
        b"%c0%af",
        b"%u0041",
        b"%",
        b"%4",
        b"%zz",
        b"\xff",
        b"a b",
        b"\x00",
        b"\n",
        b"\xc3\xa9",
    ],
)
@pytest.mark.parametrize("name", [b"grant_type", b"code", b"client_id", b"other"])
def test_odd_bytes_are_refused(http: TestClient, name: bytes, value: bytes) -> None:
    assert error(send(http, name + b"=" + value)) == (400, "invalid_request")
    assert error(send(http, value + b"=x&" + name + b"=y")) == (400, "invalid_request")


@pytest.mark.threat("DS-04")
def test_parameters_without_end_are_refused(http: TestClient) -> None:
    assert error(send(http, b"&".join(b"p%d=x" % n for n in range(101)))) == (400, "invalid_request")
    assert error(send(http, b"&" * 10_000)) == (400, "invalid_request")


@pytest.mark.threat("DS-01")
@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_bodies_are_refused(http: TestClient, path: str, chunked: bool) -> None:
    content = iter([b"x" * 40_000] * 2) if chunked else b"x" * 80_000
    content_type = "application/json" if path == "/register" else FORM
    response = http.post(path, content=content, headers={"Content-Type": content_type})
    assert error(response) == (413, "invalid_request")


@pytest.mark.threat("CO-03")
@pytest.mark.parametrize("path", PROGRAMS + DOCUMENTS)
def test_browsers_of_any_origin_may_call_without_credentials(http: TestClient, path: str) -> None:
    origin = {"Origin": "https://inspector.example"}
    preflight = http.options(path, headers=origin | {"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 204
    assert "Content-Type" in preflight.headers["access-control-allow-headers"]
    assert preflight.headers["access-control-allow-methods"] == ("POST" if path in PROGRAMS else "GET, HEAD")
    for response in (preflight, http.get(path, headers=origin)):
        assert response.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.threat("BR-05")
def test_two_authorization_headers_are_refused(host: Host) -> None:
    headers = [("Content-Type", FORM), ("Authorization", "Basic YTpi"), ("Authorization", "Basic YTpj")]
    assert error(host.http.post("/token", content=b"grant_type=refresh_token", headers=headers)) == (
        400,
        "invalid_request",
    )


def test_a_bearer_header_that_some_clients_add_is_not_looked_at(host: Host) -> None:
    form = [("grant_type", "authorization_code"), ("client_id", host.client_id), ("code", host.code())]
    response = host.post("/token", [*form, ("code_verifier", VERIFIER)], Authorization="Bearer dead")
    assert response.status_code == 200


def test_a_connection_that_closes_early_is_only_that(server: AuthorizationServer) -> None:
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/token",
        "headers": [(b"content-type", FORM.encode())],
    }

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    route = next(route for route in routes(server) if route.path == "/token")

    async def call() -> None:
        await route.app(scope, receive, send)

    asyncio.run(call())
    assert sent[0]["status"] == 400
