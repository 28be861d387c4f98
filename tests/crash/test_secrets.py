"""What a thief of the database, the state directory or the log holds: nothing that opens anything."""

import base64
import json
import os
import socket
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.crash.conftest import VERIFIER, Client, client_of, mortal_server, rows, serving
from tests.processes import PASSPHRASE, Browser, Server

MEMORY = "The spare key hangs behind the pantry door"
COOKIE = "vademecum"
TAIL = 40
"""Of a token the last characters are the secret: finding them is finding it."""


@dataclass
class Run:
    """A server that has been through everything, and each secret that was ever used with it."""

    server: Server
    public: Client
    confidential: Client
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def run(installation: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One whole journey, its log at its most talkative."""
    state_dir = tmp_path_factory.mktemp("run") / "state"
    server = mortal_server(state_dir, VADEMECUM_LOG_LEVEL="debug")
    link = server.run("owner", "setup-link").strip()
    server.run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    with serving(server), client_of(server) as public, client_of(server) as confidential:
        confidential.register(token_endpoint_auth_method="client_secret_basic")
        with Browser(server.url) as browser:
            codes = {client.client_id: client.code(browser) for client in (public, confidential)}
            cookie = browser.client.cookies[COOKIE]
        secrets = {
            "passphrase": PASSPHRASE,
            "code verifier": VERIFIER,
            "setup link": link.rpartition("/")[2],
            "personal token": server.run("tokens", "add", "--scope", "memory:read").strip(),
            "cookie": cookie,
            "client secret": confidential.client_secret or "",
        }
        for name, client in (("public", public), ("confidential", confidential)):
            tokens = client.redeem(codes[client.client_id]).json()
            refreshed = client.refresh(tokens["refresh_token"]).json()
            assert not client.call(refreshed["access_token"], "save_context", content=MEMORY).get("isError")
            secrets[f"{name} code"] = codes[client.client_id]
            for kind in ("access_token", "refresh_token"):
                secrets[f"{name} {kind}"] = tokens[kind]
                secrets[f"{name} new {kind}"] = refreshed[kind]
        yield Run(server, public, confidential, secrets)


def spellings(secret: str) -> list[bytes]:
    """As itself, quoted, in hexadecimal and in base64; of a long one its end."""
    end = secret[-TAIL:].encode()
    return [end, quote(secret)[-TAIL:].encode(), end.hex().encode(), base64.b64encode(secret.encode())]


def found(secrets: dict[str, str], content: bytes) -> list[str]:
    return [name for name, secret in secrets.items() if any(each in content for each in spellings(secret))]


@pytest.mark.threat("ST-01")
def test_no_file_of_the_state_directory_holds_a_secret(run: Run) -> None:
    files = [file for file in run.server.state_dir.rglob("*") if file.is_file()]
    assert {"vademecum.db", "vademecum.db-wal", "state.key"} <= {file.name for file in files}
    for file in files:
        assert found(run.secrets, file.read_bytes()) == [], file.name
    # The search finds what is there.
    everything = b"".join(file.read_bytes() for file in files)
    assert found({"memory": MEMORY}, everything) == ["memory"]


@pytest.mark.threat("ST-02")
def test_the_secrets_at_rest_are_for_their_owners_eyes(run: Run) -> None:
    for name in ("vademecum.db", "vademecum.db-wal", "state.key"):
        assert stat.S_IMODE((run.server.state_dir / name).stat().st_mode) == 0o600, name
    key = (run.server.state_dir / "state.key").read_bytes()
    database = (run.server.state_dir / "vademecum.db").read_bytes()
    assert len(key) == 32 and key not in database
    assert key.hex().encode() not in database and base64.b64encode(key) not in database


@pytest.mark.threat("LG-01")
def test_the_log_holds_no_secret_whatever_is_sent_where(run: Run) -> None:
    everywhere(run)
    provoke(run)
    log = run.server.log_file.read_bytes()
    assert b'"event": "http.request"' in log and b'"event": "tokens.refreshed"' in log
    lines = {line for line in log.splitlines() for name in found(run.secrets | {"memory": MEMORY}, line)}
    assert lines == set()
    key = (run.server.state_dir / "state.key").read_bytes()
    assert found({"state key": key.hex()}, log) == [] and base64.b64encode(key) not in log


def everywhere(run: Run) -> None:
    """Each secret in URLs, headers, forms and bodies where it does not belong."""
    for secret in run.secrets.values():
        quoted = quote(secret)
        for path in ("mcp", "authorize", "token", "sign-in", "setup", "memories"):
            run.public.get(f"/{path}?access_token={quoted}&code={quoted}&passphrase={quoted}")
            run.public.get(f"/{path}/{quoted}")
        headers = {"Authorization": f"Bearer {secret}x", "Cookie": f"{COOKIE}={secret}", "Referer": quoted}
        for path in ("/mcp", "/token", "/register", "/revoke", "/consent", "/sign-in", "/authorize"):
            run.public.post(path, headers=headers, data={"code": secret, secret: "x"})
            run.public.post(path, headers=headers, json={"client_name": secret, "method": secret})
        run.public.token(grant_type=secret, code=secret, refresh_token=secret, scope=secret)
        run.public.token(grant_type="refresh_token", refresh_token=secret[:-1] + "~", resource=secret)


def provoke(run: Run) -> None:
    """Requests that break, with a secret inside."""
    secret = run.secrets["public new access_token"].encode()
    host = run.server.url.removeprefix("http://").encode()
    for broken in (
        b"GET /mcp?t=" + secret + b" HTTP/9.9\r\n\r\n",
        b"POST /token HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: x" + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nX: " + secret * 100 + b"\r\n\r\n",
        secret + b"\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", run.server.port), timeout=10) as connection:
            connection.sendall(broken)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    access_token = run.secrets["public new access_token"]
    run.public.mcp(access_token, "tools/call", name=access_token, arguments={access_token: MEMORY})
    run.public.mcp(access_token, access_token, cursor=access_token)
    run.public.call(access_token, "search_context", query=MEMORY)


def leaves(value: Any) -> Iterator[str]:
    """Every string in a value, and every string in the JSON that a string holds."""
    match value:
        case str():
            yield value
            try:
                inner = json.loads(value)
            except ValueError:
                return
            if not isinstance(inner, str):
                yield from leaves(inner)
        case dict():
            for name, inner in value.items():
                yield from (name, *leaves(inner))
        case list():
            for inner in value:
                yield from leaves(inner)
        case _:
            return


@pytest.mark.threat("ST-02")
def test_nothing_that_is_stored_opens_anything(run: Run) -> None:
    state_dir = run.server.state_dir
    kept = {
        text
        for kind, key, value in rows(state_dir, "SELECT kind, key, value FROM records")
        for text in (kind, key, *leaves(value))
    }
    kept |= {
        text for row in rows(state_dir, "SELECT * FROM identities") for each in row for text in leaves(each)
    }
    kept.discard("")
    grants = [json.loads(value) for (value,) in rows(state_dir, GRANTS)]
    (personal,) = rows(state_dir, "SELECT key FROM records WHERE kind = 'personal_token'")
    assert len(grants) == 2 and len(kept) > 50

    # As it stands, and in the shape of each kind of secret.
    for text in sorted(kept):
        for grant in grants:
            code = f"vmc_code_{grant['grant_id']}.{grant['epoch']}.{text}"
            token = f"vmc_refresh_{grant['grant_id']}.{grant['generation']}.{grant['epoch']}.{text}"
            refuse_at_the_token_endpoint(run, code, token)
        refuse_at_the_token_endpoint(run, text, text)
        for bearer in (text, f"vmc_pat_{text}", f"vmc_pat_{personal[0]}.{text}"):
            answer = run.public.post("/mcp", headers=header("Authorization", f"Bearer {bearer}"))
            assert answer.status_code in (400, 401), text
        answer = run.public.get("/", **header("Cookie", f"{COOKIE}={text}"))
        assert answer.status_code in (200, 400) and "Sign out" not in answer.text, text
        assert run.public.get(f"/setup/{quote(text, safe='')}").status_code in (404, 410), text
    signed_in = run.public.get("/", Cookie=f"{COOKIE}={run.secrets['cookie']}")
    assert "Sign out" in signed_in.text

    (client_record,) = rows(state_dir, "SELECT value FROM records WHERE key = ?", run.confidential.client_id)
    thief = Client(run.server, client_id=run.confidential.client_id, http=run.public.http)
    for text in leaves(client_record[0]):
        thief.client_secret = text
        if text.isascii() and text.isprintable():
            refused = thief.refresh(run.secrets["confidential new refresh_token"])
            assert refused.status_code in (401, 429), text


GRANTS = "SELECT value FROM records WHERE kind = 'grant'"


def header(name: str, value: str) -> dict[str, Any]:
    """As bytes: what is stored need not be what a header may hold."""
    return {name: "".join(c if c.isascii() and c.isprintable() else "?" for c in value)}


def refuse_at_the_token_endpoint(run: Run, code: str, refresh_token: str) -> None:
    for send in (partial(run.public.redeem, code), partial(run.public.refresh, refresh_token)):
        while (answer := send()).status_code == 429:
            time.sleep(int(answer.headers["Retry-After"]))
        assert (answer.status_code, answer.json()["error"]) in (
            (400, "invalid_grant"),
            (400, "invalid_request"),
        ), code


@pytest.mark.threat("ST-02")
def test_a_wrong_state_key_or_one_that_others_may_read_fails_closed(state_dir: Path) -> None:
    server = mortal_server(state_dir)
    with serving(server), client_of(server) as client:
        client.connect()
    wrong = base64.urlsafe_b64encode(os.urandom(32)).decode()
    refused = serve_in_vain(mortal_server(state_dir, VADEMECUM_STATE_KEY=wrong))
    assert "another state key" in refused and wrong not in refused
    key_file = state_dir / "state.key"
    key_file.chmod(0o640)
    assert "chmod 600" in serve_in_vain(server)
    key_file.chmod(0o600)
    key = key_file.read_bytes()
    key_file.write_bytes(key[:-1])
    assert "32 bytes expected" in serve_in_vain(server)
    key_file.unlink()
    # A new key is made, and opens nothing of what the old one closed.
    assert "another state key" in serve_in_vain(server)


def serve_in_vain(server: Server) -> str:
    """What a server says that refuses to start, in lines for a person."""
    command = (*server.command, "serve")
    done = subprocess.run(command, env=server.env(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.threat("LG-02")
def test_a_file_that_is_no_database_ends_the_start_with_one_line(state_dir: Path) -> None:
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (state_dir / "vademecum.db").write_bytes(os.urandom(8192))
    assert "cannot be used as the database" in serve_in_vain(mortal_server(state_dir))
