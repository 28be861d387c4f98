"""Stalled, oversized and ambiguous requests, sent byte by byte over real sockets."""

import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from connector import wire
from connector.wire import BoundedProtocol

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
AMBIGUOUS = {
    "length and chunked": HEAD
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "signed length": HEAD + b"Content-Length: +0\r\n\r\n",
    "bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "space before colon": HEAD + b"Content-Length : 2\r\n\r\nab",
    "coding after chunked": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
}
OVERSIZED = {
    "one header": HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"X%d: 1\r\n" % n for n in range(5_000)) + b"\r\n",
    "address": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
}


async def echo_length(scope: Scope, receive: Receive, send: Send) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    echoed = dict(scope["headers"]).get(b"x-name", b"")
    headers = [(b"content-length", str(len(body)).encode()), (b"x-name", b"[" + echoed + b"]")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port() -> Iterator[int]:
    config = uvicorn.Config(
        echo_length,
        port=0,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def exchange(port: int, request: bytes) -> bytes:
    """Everything the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        received = b""
        try:
            connection.sendall(request)
            while part := connection.recv(65_536):
                received += part
        except ConnectionError:
            pass
        return received


def test_an_ordinary_request_passes(port: int) -> None:
    answer = exchange(port, HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nab")
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"2")


@pytest.mark.threat("DS-05")
@pytest.mark.parametrize("request_bytes", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_framing_gets_one_refusal_and_a_closed_connection(port: int, request_bytes: bytes) -> None:
    answer = exchange(port, request_bytes)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.threat("DS-04")
@pytest.mark.parametrize("request_bytes", OVERSIZED.values(), ids=OVERSIZED.keys())
def test_an_oversized_head_is_refused(port: int, request_bytes: bytes) -> None:
    assert exchange(port, request_bytes)[:12] in (b"HTTP/1.1 431", b"")


@pytest.mark.threat("DS-06")
@pytest.mark.parametrize(
    "request_bytes", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\nab"], ids=["silent", "head", "body"]
)
def test_a_stalled_connection_is_closed(
    port: int, request_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wire.READ_SECONDS <= 30
    monkeypatch.setattr(wire, "READ_SECONDS", 0.2)
    assert exchange(port, request_bytes) == b""


@pytest.mark.threat("DS-03")
def test_a_hundred_stalled_connections_do_not_stop_the_service(port: int) -> None:
    stalled = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    try:
        for number, connection in enumerate(stalled):
            connection.sendall(HEAD if number % 2 else HEAD + b"Content-Length: 9\r\n\r\nab")
        answer = exchange(port, HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nab")
        assert answer.startswith(b"HTTP/1.1 200")
    finally:
        for connection in stalled:
            connection.close()


def test_white_space_around_a_header_s_value_is_not_part_of_it(port: int) -> None:
    answer = exchange(port, HEAD + b"X-Name: \t value \t\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    assert b"x-name: [value]" in answer
