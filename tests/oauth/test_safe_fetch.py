"""Fetching from addresses that strangers choose: where it does not go, and what it does not swallow."""

import asyncio
import gzip

import httpx2
import pytest

from oauth import safe_fetch
from oauth.safe_fetch import BadDocument, Document, Fetcher, Unreachable, is_fetchable, is_public
from tests.oauth.web import PUBLIC, Web

URL = "https://client.example/metadata.json"


def fetch(web: Web, url: str = URL) -> Document:
    return asyncio.run(web.fetcher().fetch(url))


def test_a_document_is_fetched(web: Web) -> None:
    web.publish(URL, {"client_id": URL}, Cache_Control="public, max-age=600")
    document = fetch(web)
    assert document.members == {"client_id": URL}
    assert document.max_age is not None
    assert document.max_age.total_seconds() == 600


@pytest.mark.threat("CI-06")
def test_the_connection_goes_to_the_checked_address_with_the_name_in_the_handshake(web: Web) -> None:
    web.publish(URL, {})
    fetch(web)
    assert (web.resolved, web.connected) == (["client.example"], [(PUBLIC, "client.example")])


def test_ports_and_ipv6_addresses_are_kept(web: Web) -> None:
    url = "https://client.example:8443/m?x=y"
    web.addresses["client.example"] = ["2606:2800:21f::1"]
    web.publish(url, {"a": 1})
    assert fetch(web, url).members == {"a": 1}
    assert web.connected == [("2606:2800:21f::1", "client.example")]


@pytest.mark.threat("CI-01")
@pytest.mark.threat("CI-02")
@pytest.mark.threat("CI-03")
@pytest.mark.threat("CI-04")
@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/m",
        "https://127.0.0.2/m",
        "https://0.0.0.0/m",
        "https://localhost/m",
        "https://foo.localhost/m",
        "https://[::1]/m",
        "https://[::ffff:127.0.0.1]/m",
        "https://[64:ff9b::7f00:1]/m",
        "https://[2002:7f00:1::]/m",
        "https://2130706433/m",
        "https://0x7f000001/m",
        "https://0x7f.0.0.1/m",
        "https://017700000001/m",
        "https://127.1/m",
        "https://\u2460\u2461\u2466.0.0.1/m",
        "https://127\u30020\u30020\u30021/m",
        "https://metadata.google.internal/m",
        "https://printer.local/m",
        "https://93.184.215.14/m",
        "http://client.example/m",
        "file:///etc/passwd",
        "gopher://client.example/m",
        "ftp://client.example/m",
        "https:client.example/m",
        "//client.example/m",
        "https://client.example",
        "https://client.example/",
        "https://client.example?x",
        "https://user@client.example/m",
        "https://user:pass@client.example/m",
        "https://client.example/m#f",
        "https://client.example/a/../m",
        "https://client.example/./m",
        "https://client.example/%2e%2e/m",
        "https://client.example/.%2E/m",
        "https://client.example/m\r\nX: y",
        "https://client.example/m ",
        "https://client.example\\@evil.example/m",
        "https://client.example\\m",
        "https://client.example:0/m",
        "https://client.example:99999/m",
        "https://client.example./m",
        "https://Client.example/m",
        "HTTPS://client.example/m",
        "https://client.example/" + "x" * 1000,
        "",
    ],
)
def test_an_address_that_is_odd_is_not_even_resolved(web: Web, url: str) -> None:
    assert not is_fetchable(url)
    with pytest.raises(BadDocument):
        fetch(web, url)
    assert (web.resolved, web.connected) == ([], [])


@pytest.mark.threat("CI-02")
@pytest.mark.threat("CI-05")
@pytest.mark.threat("CI-06")
@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["172.16.0.1"],
        ["192.168.1.1"],
        ["169.254.169.254"],
        ["100.64.0.1"],
        ["0.0.0.0"],  # noqa: S104 - an address to refuse
        ["224.0.0.1"],
        ["255.255.255.255"],
        ["168.63.129.16"],
        ["192.88.99.1"],
        ["198.18.0.1"],
        ["::1"],
        ["::"],
        ["::ffff:127.0.0.1"],
        ["::ffff:8.8.8.8"],
        ["::127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["2001::1"],
        ["2001:db8::1"],
        ["fd00:ec2::254"],
        ["fe80::1"],
        ["fec0::1"],
        ["ff02::1"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
    ],
    ids=str,
)
def test_a_name_with_an_address_that_is_not_public_is_never_connected_to(
    web: Web, addresses: list[str]
) -> None:
    web.addresses["client.example"] = addresses
    web.publish(URL, {})
    with pytest.raises(BadDocument) as refused:
        fetch(web)
    assert web.connected == []
    with pytest.raises(BadDocument) as odd:
        fetch(web, "https://127.0.0.1/m")
    assert refused.value.description == odd.value.description


def test_public_addresses_are_public() -> None:
    assert is_public(PUBLIC)
    assert is_public("2606:4700::1111")


@pytest.mark.threat("CI-07")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(web: Web, status: int) -> None:
    web.publish(URL, {}, status=status, Location="https://127.0.0.1/m")
    with pytest.raises(BadDocument):
        fetch(web)
    assert len(web.connected) == 1


@pytest.mark.threat("CI-08")
@pytest.mark.parametrize("status", [400, 401, 404, 410, 204, 206])
def test_no_document_there(web: Web, status: int) -> None:
    web.publish(URL, {}, status=status)
    with pytest.raises(BadDocument):
        fetch(web)


@pytest.mark.threat("CI-08")
@pytest.mark.parametrize("status", [403, 429, 500, 502, 503])
def test_a_refusal_that_may_pass(web: Web, status: int) -> None:
    web.publish(URL, {}, status=status)
    with pytest.raises(Unreachable) as unreachable:
        fetch(web)
    assert unreachable.value.status_code == 503


@pytest.mark.threat("CI-08")
@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b'{"x": "' + b"x" * 70_000 + b'"}', {}),
        (b'{"x": "' + b"x" * 70_000 + b'"}', {"Content_Length": "20"}),
        (b"<html>", {}),
        (b"[]", {}),
        (b'{"a": 1, "a": 2}', {}),
        (b"{}", {"Content_Type": "text/html"}),
        (b"{}", {"Content_Type": ""}),
        (gzip.compress(b"{}"), {"Content_Encoding": "gzip"}),
        (b"{}", {"Content_Encoding": "br"}),
    ],
    ids=["large", "lying", "html", "list", "double", "type", "untyped", "gzip", "br"],
)
def test_a_bad_document_is_refused(web: Web, content: bytes, headers: dict[str, str]) -> None:
    answer = httpx2.Response(200, headers={"Content-Type": "application/json"})
    for name, value in headers.items():
        answer.headers[name.replace("_", "-")] = value
    answer._content = content
    web.answers[URL] = answer
    with pytest.raises(BadDocument):
        fetch(web)


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "application/oauth-client+json"])
def test_json_by_any_of_its_names(web: Web, media_type: str) -> None:
    web.publish(URL, {"a": 1}, Content_Type=media_type)
    assert fetch(web).members == {"a": 1}


@pytest.mark.threat("CI-08")
@pytest.mark.parametrize(
    "failure", [httpx2.ConnectError("no"), httpx2.ReadTimeout("slow"), OSError("no")], ids=str
)
def test_a_network_failure_may_pass(web: Web, failure: Exception) -> None:
    web.answers[URL] = failure
    with pytest.raises(Unreachable) as unreachable:
        fetch(web)
    assert dict(unreachable.value.extra_headers()) == {"Retry-After": "60"}


def test_a_name_that_does_not_resolve_may_pass(web: Web) -> None:
    web.addresses["client.example"] = []
    with pytest.raises(Unreachable):
        fetch(web)


@pytest.mark.threat("CI-08")
def test_a_slow_host_is_given_up_on(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_fetch, "TIMEOUT_SECONDS", 0.01)
    web.publish(URL, {})
    web.delay = 60
    with pytest.raises(Unreachable):
        fetch(web)


def test_fetches_at_once_are_bounded(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_fetch, "MAX_CONCURRENT_FETCHES", 2)
    web.publish(URL, {})
    web.delay = 0.01

    async def flood() -> list[object]:
        fetcher = web.fetcher()
        tasks = [fetcher.fetch(URL) for _ in range(5)]
        outcomes: list[object] = list(await asyncio.gather(*tasks, return_exceptions=True))
        assert await fetcher.fetch(URL)
        return outcomes

    outcomes = asyncio.run(flood())
    assert sum(isinstance(outcome, Unreachable) for outcome in outcomes) == 3


def test_without_a_stand_in_the_system_resolves() -> None:
    assert asyncio.run(safe_fetch.resolve("127.0.0.1", 443)) == ["127.0.0.1"]
    assert Fetcher()._transport is httpx2.AsyncHTTPTransport
