"""Whether a server can be reached at all: its address, its certificate and its clock."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx2

from connector.doctor.report import HOSTS, Check, failed, ok, skipped, warning
from connector.settings import is_loopback

MAX_CLOCK_DIFFERENCE = timedelta(minutes=2)
EXPIRES_SOON = timedelta(days=14)
CERTIFICATE = "Renew the certificate, and serve its whole chain."


def https(url: str) -> Check:
    """Whether hosts on other machines would use the address."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        mend = "Hosts on other machines need a public https URL."
        return warning("https", "this address is for clients on this machine", mend)
    if parts.scheme != "https":
        return failed("https", "hosts connect by https only", "Put nginx or Caddy with TLS in front.", HOSTS)
    return ok("https")


def reach(http: httpx2.Client, url: str) -> tuple[httpx2.Response | None, Check]:
    """Any answer will do."""
    try:
        return http.get(url), ok("reachable")
    except httpx2.ConnectError as error:
        if "certificate" in str(error).lower() or "ssl" in str(error).lower():
            return None, failed("tls", str(error), CERTIFICATE, HOSTS)
        mend = "Look at DNS, firewall, proxy, and whether the server runs."
        return None, failed("reachable", str(error), mend, HOSTS)
    except httpx2.TransportError as error:
        return None, failed(
            "reachable", repr(error), "Look at the proxy, and whether the server runs.", HOSTS
        )


def certificate(host: str, port: int, now: datetime) -> Check:
    """Whether it is valid, and for how long yet."""
    try:
        with socket.create_connection((host, port), timeout=10) as plain:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            with context.wrap_socket(plain, server_hostname=host) as secured:
                presented = secured.getpeercert() or {}
    except OSError as error:
        return failed("tls", str(error), CERTIFICATE, HOSTS)
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(presented["notAfter"])), UTC)
    if ends - now < EXPIRES_SOON:
        return warning("tls", f"the certificate ends on {ends:%Y-%m-%d}", "Look at certbot's timer.")
    return ok("tls", f"until {ends:%Y-%m-%d}")


def clock(answer: httpx2.Response, now: datetime) -> Check:
    """Tokens and assertions name times that both sides must agree on."""
    try:
        there = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return skipped("clock_difference", "the server does not say its time")
    difference = abs(there - now)
    if difference > MAX_CLOCK_DIFFERENCE:
        said = f"the server's clock and this one's differ by {difference}"
        return failed("clock_difference", said, "Turn on time synchronization on both.", HOSTS)
    return ok("clock_difference")
