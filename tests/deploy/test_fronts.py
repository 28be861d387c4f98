"""The proxy configurations that are shipped, before the server that the unit starts, over TLS."""

import base64
import contextlib
import datetime
import json
import os
import shutil
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.clients.host import PYTHON, Host
from tests.deploy.units import ROOT, command
from tests.fronts import caddy, nginx
from tests.processes import PASSPHRASE, Server, free_port, running

NAME = "localhost"
FRONTS = ("nginx", "caddy")


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each of these replaced; each must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Certificate:
    """A self-signed one, and its key."""

    certificate: Path
    key: Path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    directory = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(NAME), x509.IPAddress(ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(directory / "fullchain.pem", directory / "privkey.pem")
    made.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made


@dataclass(frozen=True)
class Front:
    """A running proxy."""

    kind: str
    port: int
    directory: Path

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}"

    def access_log(self) -> str:
        """What it has written of the requests so far."""
        log = self.directory / "access.log"
        return log.read_text() if log.exists() else ""


@contextlib.contextmanager
def front_of(
    kind: str, directory: Path, certificate: Certificate, port: int, upstream: int
) -> Iterator[Front]:
    """The shipped configuration, with names, ports and paths of this machine."""
    log = str(directory / "access.log")
    to_us = ("127.0.0.1:8788", f"127.0.0.1:{upstream}")
    with ExitStack() as stack:
        if kind == "nginx":
            configuration = replaced(
                (ROOT / "deploy" / "nginx" / "vademecum.conf").read_text(),
                to_us,
                ("/etc/letsencrypt/live/memory.example.org/fullchain.pem", str(certificate.certificate)),
                ("/etc/letsencrypt/live/memory.example.org/privkey.pem", str(certificate.key)),
                ("memory.example.org", NAME),
                ("    listen [::]:80;\n", ""),
                ("    listen [::]:443 ssl http2;\n", ""),
                ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
                ("listen 443 ", f"listen 127.0.0.1:{port} "),
                ("/var/log/nginx/vademecum.log", log),
                ("/var/log/nginx/vademecum-error.log", str(directory / "errors.log")),
            )
            stack.enter_context(nginx(directory, configuration))
        else:
            tls = f"tls {certificate.certificate} {certificate.key}"
            configuration = replaced(
                (ROOT / "deploy" / "caddy" / "Caddyfile").read_text(),
                to_us,
                ("\nmemory.example.org {", f"\nhttps://{NAME}:{port} {{\n\t{tls}"),
                ("\n{\n\tservers", "\n{\n\tadmin off\n\tauto_https disable_redirects\n\tservers"),
                ("/var/log/caddy/vademecum.log", log),
            )
            stack.enter_context(caddy(directory, configuration))
        wait_for(port)
        yield Front(kind, port, directory)


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError("the proxy does not listen")


@dataclass
class ServedByUnit(Server):
    """The server as the unit starts it: its command line, its state directory, its credentials."""

    public_url: str = ""

    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VADEMECUM_")}
        return {
            **kept,
            "VADEMECUM_PUBLIC_URL": self.public_url,
            "VADEMECUM_PORT": str(self.port),
            "VADEMECUM_TRUSTED_PROXIES": "loopback",
            "VADEMECUM_EMBEDDER": "none",
            "STATE_DIRECTORY": str(self.state_dir),
            "CREDENTIALS_DIRECTORY": str(self.state_dir.parent / "credentials"),
        }


@pytest.fixture(params=FRONTS)
def installation(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Front]:
    """Proxy and server, and everybody here trusting the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    binary = shutil.which("vademecum", path=str(Path(sys.executable).parent))
    assert binary is not None
    *program, last = command("vademecum.service", binary)
    assert last == "serve"
    (tmp_path / "credentials").mkdir()
    key = base64.urlsafe_b64encode(bytes(range(32))).decode()
    (tmp_path / "credentials" / "VADEMECUM_STATE_KEY").write_text(key)
    port = free_port()
    server = ServedByUnit(tmp_path / "state", command=tuple(program), public_url=f"https://{NAME}:{port}")
    with running(server), front_of(request.param, tmp_path, certificate, port, server.port) as front:
        assert not (server.state_dir / "state.key").exists()
        yield front


def test_a_real_client_goes_the_whole_way_over_tls(installation: Front, tmp_path: Path) -> None:
    host = Host(PYTHON, installation.url, tmp_path / "client.json")
    try:
        assert host.do("connect")["name"] == "vademecum"
        saved = host.call("save_context", content="The spare key hangs behind the pantry door")
        found = host.call("search_context", query="spare key")
        assert found["matches"][0]["id"] == saved["item"]["id"]
        large = "a sentence of forty characters or nearly. " * 2_000
        assert host.call("save_context", content=large)["write_status"] == "created"
        assert host.authorizations == 1
        tokens = host.tokens()
    finally:
        host.kill()

    logged = installation.access_log()
    assert "?" not in logged
    for secret in (PASSPHRASE, tokens["access_token"], tokens["refresh_token"]):
        assert secret not in logged
    assert "code_challenge" not in logged
    if installation.kind == "nginx":
        assert "POST /mcp 200" in logged
        assert "GET /authorize 302" in logged or "GET /authorize 303" in logged


@pytest.fixture
def http(installation: Front) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=installation.url, timeout=60) as client:
        yield client


def test_the_way_in_is_exact_bounded_and_closed_to_what_is_for_this_machine(
    installation: Front, http: httpx2.Client
) -> None:
    challenge = http.post("/mcp", json={})
    assert challenge.status_code == 401
    assert f'resource_metadata="{installation.url}/' in challenge.headers["www-authenticate"]
    assert http.post("/mcp/", json={}).status_code == 401
    assert http.post("/mcpx", json={}).status_code == 404
    assert http.get("/health/ready").status_code == 404

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    ours = http.post("/token", content=b"a" * (100 * 1024), headers=form)
    assert (ours.status_code, ours.json()["error"]) == (413, "invalid_request")
    beyond = http.post("/token", content=b"a" * (200 * 1024), headers=form)
    assert beyond.status_code in (413, 502)  # 502 is what Caddy 2.6 makes of its own limit
    assert http.post("/mcp", content=b"a" * (6 * 1024 * 1024)).status_code in (401, 413)

    wrong = http.get("/", headers={"Host": "evil.example"})
    assert wrong.status_code == 421 or not wrong.content  # Caddy has nothing to say at other names
    assert "evil.example" not in wrong.text


def test_http_2_and_no_old_tls(installation: Front, certificate: Certificate) -> None:
    context = ssl.create_default_context(cafile=str(certificate.certificate))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", installation.port), 10) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as secured,
    ):
        assert secured.selected_alpn_protocol() == "h2"
        assert secured.version() == "TLSv1.3"


class _Recorder(BaseHTTPRequestHandler):
    """Answers with the headers it was sent, one piece at a time."""

    def do_GET(self) -> None:
        body = json.dumps([[name.lower(), value] for name, value in self.headers.items()]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@pytest.mark.parametrize("kind", FRONTS)
def test_the_server_is_told_the_host_and_the_address_of_the_connection_and_nothing_made_up(
    kind: str, tmp_path: Path, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    backend = HTTPServer(("127.0.0.1", 0), _Recorder)
    thread = threading.Thread(target=backend.serve_forever, daemon=True)
    thread.start()
    try:
        with front_of(kind, tmp_path, certificate, free_port(), backend.server_port) as front:
            answer = httpx2.get(front.url + "/token", headers={"X-Forwarded-For": "6.6.6.6"})
        headers = answer.json()
        assert [value for name, value in headers if name == "x-forwarded-for"] == ["127.0.0.1"]
        assert [value for name, value in headers if name == "host"] == [f"{NAME}:{front.port}"]
    finally:
        backend.shutdown()
        backend.server_close()
        thread.join()
