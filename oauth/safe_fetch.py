"""Fetches a small JSON document from an address that a stranger chose, and cannot be led elsewhere by it.

The client ID metadata document draft §6.5, MCP security best practices (SSRF): https only, the name resolved
once, every address of it public, the connection made to that very address, no redirect, no proxy, five
seconds and 64 KiB for all of it.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2

from oauth.errors import InvalidClient, InvalidClientMetadata, TemporarilyUnavailable
from oauth.parameters import parse_json

TIMEOUT_SECONDS = 5.0
MAX_DOCUMENT_BYTES = 64 * 1024
MAX_URL_LENGTH = 1000
MAX_CONCURRENT_FETCHES = 16

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_URL = re.compile(
    r"https://((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:[a-z]{2,}|xn--[a-z0-9-]+))(?::([0-9]{1,5}))?"
    r"(/[A-Za-z0-9._~:@!$&'()*+,;=%/-]+)(\?[A-Za-z0-9._~:@!$&'()*+,;=%/?-]*)?"
)
_SPECIAL_NAMES = ("localhost", "local", "internal", "invalid", "test", "onion", "arpa", "home", "lan")
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?([0-9]{1,9})", re.IGNORECASE)

_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in ("192.88.99.0/24", "168.63.129.16/32", "224.0.0.0/4", "2002::/16", "3fff::/20")
)


class BadDocument(InvalidClient):
    """The address may not be fetched, or what is there is no document for this client."""


class Unreachable(TemporarilyUnavailable):
    """The host did not answer as it should; the same request may do later."""


@dataclass(frozen=True)
class Document:
    """A JSON object and how long it may be kept, as far as its host says so."""

    members: dict[str, Any]
    max_age: timedelta | None


def is_fetchable(url: str) -> bool:
    """Whether the URL is one that could be fetched at all: https, a public name, a path, nothing odd."""
    match = _URL.fullmatch(url)
    if match is None or len(url) > MAX_URL_LENGTH:
        return False
    name, port, path, _ = match.groups()
    segments = [unquote(segment) for segment in path.split("/")]
    is_port = port is None or 0 < int(port) <= 65535
    return is_port and name.rpartition(".")[2] not in _SPECIAL_NAMES and not {".", ".."} & set(segments)


def is_public(address: str) -> bool:
    """Whether the address is on the open internet, in no disguise."""
    ip = ipaddress.ip_address(address)
    if ip.version == 6 and ip not in _GLOBAL_IPV6:
        return False
    return ip.is_global and not any(ip in network for network in _NEVER if network.version == ip.version)


async def resolve(name: str, port: int) -> list[str]:
    """The addresses of a name, as the system finds them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Fetcher:
    """Fetches documents; the transport and the resolver are handed in, for tests without a network."""

    def __init__(
        self, resolve: Resolve = resolve, transport: Callable[[], httpx2.AsyncBaseTransport] | None = None
    ) -> None:
        self._resolve = resolve
        self._transport = transport or httpx2.AsyncHTTPTransport
        self._fetching = 0

    async def fetch(self, url: str) -> Document:
        """The document at this address.

        Raises:
            BadDocument: the address may not be fetched, or there is no JSON object of a decent size.
            Unreachable: no name, no connection, no answer in time, or a passing refusal: 403, 429, 5xx.
        """
        if not is_fetchable(url):
            raise BadDocument("the address of the client's document may not be fetched")
        if self._fetching >= MAX_CONCURRENT_FETCHES:
            raise Unreachable("too many documents are being fetched")
        self._fetching += 1
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._fetch(url)
        except (httpx2.TransportError, OSError, TimeoutError, UnicodeError):
            raise Unreachable("the client's document cannot be fetched now", 60) from None
        finally:
            self._fetching -= 1

    async def _fetch(self, url: str) -> Document:
        parts = urlsplit(url)
        name = parts.hostname or ""
        addresses = await self._resolve(name, parts.port or 443)
        if not addresses or not all(is_public(address) for address in addresses):
            raise BadDocument("the address of the client's document may not be fetched")
        # Connected to the address that was checked; the certificate must still be the name's.
        ip = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        pinned = urlunsplit(parts._replace(netloc=ip if parts.port is None else f"{ip}:{parts.port}"))
        headers = {"Host": parts.netloc, "Accept": "application/json", "Accept-Encoding": "identity"}
        async with (
            httpx2.AsyncClient(
                transport=self._transport(), trust_env=False, timeout=TIMEOUT_SECONDS
            ) as client,
            client.stream("GET", pinned, headers=headers, extensions={"sni_hostname": name}) as response,
        ):
            return await _read(response)


async def _read(response: httpx2.Response) -> Document:
    if response.status_code in (403, 429) or response.status_code >= 500:
        raise Unreachable("the client's document cannot be fetched now", 60)
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = media_type == "application/json" or media_type.endswith("+json")
    if response.status_code != 200 or not is_json or "content-encoding" in response.headers:
        raise BadDocument("there is no JSON document at the client's address")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_DOCUMENT_BYTES:
            raise BadDocument("the client's document is too large")
    try:
        members = parse_json(bytes(body))
    except InvalidClientMetadata:
        raise BadDocument("the client's document is not a JSON object") from None
    return Document(members, _max_age(response.headers.get("cache-control", "")))


def _max_age(cache_control: str) -> timedelta | None:
    match = _MAX_AGE.search(cache_control)
    return timedelta(seconds=int(match[1])) if match else None
