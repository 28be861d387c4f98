"""What an operator sees of a journey: counted steps, and log lines that belong together."""

import json
import logging
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretBytes
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.logs import JsonFormatter
from connector.metrics import Metrics
from connector.oauth_steps import EVENTS
from connector.settings import SettingsError
from oauth import keys
from store.errors import StoreError
from tests.flows.conftest import PUBLIC_URL, Clock, Host
from tests.processes import PASSPHRASE, Server, free_port, running

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "vademecum.rules.yml"
OTHER_KEY = SecretBytes(bytes(range(1, 33)))
CONTENT = "the spare key hangs behind the pantry door"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest) -> str:
    """One engine: what is counted does not depend on it."""
    return str(request.param)


@pytest.fixture
def observed(parts: Vademecum) -> Vademecum:
    """The installation, with somebody looking."""
    return replace(parts, settings=parts.settings.model_copy(update={"metrics_port": free_port()}))


@pytest.fixture
def metrics(observed: Vademecum) -> Iterator[Metrics]:
    """Its metrics, told of every log entry as `serve` does."""
    assert observed.metrics is not None
    handler, root = observed.metrics.log_handler(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield observed.metrics
    root.removeHandler(handler)
    root.setLevel(level)
    observed.database.close()


@pytest.fixture
def http(observed: Vademecum, metrics: Metrics) -> Iterator[TestClient]:
    app = create_app(observed)
    with TestClient(app, PUBLIC_URL, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


def served(metrics: Metrics, port: int) -> str:
    with metrics.served(port):
        return httpx2.get(f"http://127.0.0.1:{port}/metrics").text


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((f"vademecum_{name}", frozenset(labels.items())), 0)


def test_a_journey_is_counted_by_fixed_labels_alone(metrics: Metrics, http: TestClient) -> None:
    host = Host(http)
    registered = host.register(client_name="Peculiar Client")
    tokens = host.redeem(host.authorize()["code"])
    host.call(tokens["access_token"], "save_context", content=CONTENT, topic="peculiar-topic")
    host.call(tokens["access_token"], "search_context", query="peculiar query")
    host.mcp(tokens["access_token"], "tools/call", name="no_such_peculiar_tool", arguments={})
    host.token(grant_type="refresh_token", refresh_token="peculiar")
    host.token(grant_type="peculiar")
    http.request("PECULIAR", "/peculiar-path?code=peculiar")
    http.get("/setup/peculiar")

    text = served(metrics, free_port())
    found = samples(text)
    assert value(found, "tool_calls_total", tool="save_context", status="ok") == 1
    assert value(found, "tool_call_seconds_count", tool="search_context") == 1
    assert value(found, "http_requests_total", route="/register", method="POST", status="201") == 1
    assert value(found, "http_requests_total", route="/token", method="POST", status="400") == 2
    assert value(found, "http_requests_total", route="…", method="other", status="404") == 1
    for step in ("register", "authorize", "sign_in", "consent", "code", "redeem"):
        assert value(found, "oauth_steps_total", step=step, outcome="ok") == 1, step
    assert value(found, "oauth_steps_total", step="token", outcome="invalid_grant") == 1
    assert value(found, "oauth_steps_total", step="token", outcome="unsupported_grant_type") == 1
    for check in ("database", "embedder", "state_key"):
        assert value(found, "ready", check=check) == 1
    assert value(found, "embeddings_owed") == 0
    assert "process_resident_memory_bytes" in text
    for strange in ("peculiar", "pantry", registered["client_id"], PASSPHRASE, *tokens.values()):
        assert str(strange).lower() not in text.lower() or strange == "Bearer"


def test_failures_of_embedder_and_database_are_counted_and_owed_embeddings_shown(clock: Clock) -> None:
    metrics = Metrics(version="0")
    asked = []

    def owed() -> int:
        asked.append(1)
        return 7

    metrics.watch(lambda: {"database": False}, owed)
    for event in ("embedder.unavailable", "embedding.still_owed", "firestore.gave_up", "store.unavailable"):
        metrics.event(event, {})
    for _ in range(3):
        found = samples(served(metrics, free_port()))
    assert value(found, "embedder_failures_total") == 2
    assert value(found, "database_failures_total") == 2
    assert value(found, "ready", check="database") == 0
    assert value(found, "embeddings_owed") == 7
    assert len(asked) == 1


def test_what_cannot_be_counted_is_left_out_and_the_rest_is_shown() -> None:
    def owed() -> int:
        raise StoreError("unavailable", "away")

    metrics = Metrics(version="0")
    metrics.watch(lambda: {"database": False}, owed)
    assert "vademecum_embeddings_owed" not in served(metrics, free_port())


def test_a_busy_database_is_counted_and_is_not_ready(
    metrics: Metrics, http: TestClient, observed: Vademecum, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(observed.database), "problem", lambda self: "disk I/O error")
    answer = http.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "failed")
    assert "disk" not in answer.text


def test_a_state_key_that_no_longer_opens_the_signing_keys_is_not_ready(
    http: TestClient, observed: Vademecum, clock: Clock
) -> None:
    assert http.get("/health/ready").status_code == 200
    # As after a restore: the database holds keys that were encrypted with another state key.
    (ring,) = observed.records.select(keys.KIND, "epoch", observed.authorization_server.keys.ring().epoch)
    others = replace(observed, settings=observed.settings.model_copy(update={"state_key": OTHER_KEY}))
    observed.records.delete(keys.KIND, "ring")
    assert others.authorization_server.keys.ring().epoch != ring["epoch"]
    others.database.close()
    clock.advance(minutes=10)
    answer = http.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["state_key"]) == (503, "failed")


@dataclass
class Written(logging.Handler):
    """Log lines as the server writes them, formatted where they arise."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    __hash__ = object.__hash__

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(JsonFormatter().format(record)))

    def of(self, event: str) -> dict[str, Any]:
        (line,) = (each for each in self.lines if each["event"] == event)
        return line


@pytest.fixture
def written(metrics: Metrics) -> Iterator[Written]:
    handler = Written()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_each_step_of_authorization_is_a_line_with_client_step_outcome_and_request(
    http: TestClient, written: Written
) -> None:
    host = Host(http)
    host.register(client_name="Peculiar Client")
    code = host.authorize()["code"]
    tokens = host.redeem(code)
    refreshed = host.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"]).json()
    refused = host.token(grant_type="refresh_token", refresh_token="x" * 20)

    for event, step in {
        "client.registered": "register",
        "authorization.requested": "authorize",
        "consent.allowed": "consent",
        "code.issued": "code",
        "code.redeemed": "redeem",
        "tokens.refreshed": "refresh",
    }.items():
        line = written.of(event)
        assert (line["step"], line["outcome"], line["client_name"]) == (step, "ok", "Peculiar Client"), event
        assert re.fullmatch("[0-9a-f]{16}", line["request_id"])
    line = written.of("request.refused")
    assert (line["step"], line["outcome"], line["client_name"]) == (
        "token",
        "invalid_grant",
        "Peculiar Client",
    )
    assert line["request_id"] == refused.headers["x-request-id"]

    requests = {line["request_id"] for line in written.lines if line["event"] == "http.request"}
    assert {line["request_id"] for line in written.lines if line["logger"].startswith("oauth")} <= requests
    text = json.dumps(written.lines)
    for secret in (code, PASSPHRASE, *(each[name] for each in (tokens, refreshed) for name in _TOKENS)):
        assert secret not in text


_TOKENS = ("access_token", "refresh_token")


def test_a_client_that_nobody_knows_puts_no_words_into_the_log(http: TestClient, written: Written) -> None:
    host = Host(http, client_id="vmc_refresh_pasted-by-mistake")
    assert host.token(grant_type="refresh_token", refresh_token="x").status_code == 401
    assert "pasted" not in json.dumps(written.lines)


def test_the_traceback_of_a_bug_carries_the_id_that_the_client_was_told(tmp_path: Path) -> None:
    """In a process: the traceback is written by uvicorn, outside of everything of ours."""
    with running(Server(tmp_path / "state")) as server:
        database = server.state_dir / "vademecum.db"
        with closing(sqlite3.connect(database)) as other:
            other.execute("ALTER TABLE records RENAME TO records_that_was")
        form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": "vmc_dcr_" + "0" * 32}
        answer = httpx2.post(f"{server.url}/token", data=form)
    assert answer.status_code == 500
    lines = [json.loads(line) for line in server.log_file.read_text().splitlines()]
    ours = [line for line in lines if line.get("request_id") == answer.headers["x-request-id"]]
    assert "http.request" in {line["event"] for line in ours}
    assert any("traceback" in line for line in ours)
    assert not [line for line in lines if "traceback" in line and "request_id" not in line]


def test_metrics_are_for_this_machine_alone_and_off_by_default(tmp_path: Path) -> None:
    port = free_port()
    with running(
        Server(tmp_path / "on", {"VADEMECUM_METRICS_PORT": str(port), "VADEMECUM_LOG_LEVEL": "error"})
    ) as server:
        httpx2.post(f"{server.url}/register", json={"redirect_uris": ["https://app.example/cb"]})
        found = samples(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)
        # Counted although nothing of that level is written.
        assert value(found, "oauth_steps_total", step="register", outcome="ok") == 1
        assert "client.registered" not in server.log_file.read_text()
        assert httpx2.get(f"{server.url}/metrics").status_code == 404
        for address in _other_addresses():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address, port), 5)


def _other_addresses() -> list[str]:
    found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    return sorted({str(each[4][0]) for each in found if not str(each[4][0]).startswith("127.")})


def test_a_metrics_port_that_is_taken_ends_the_start_with_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(SettingsError, match="VADEMECUM_METRICS_PORT"),
            Metrics().served(taken.getsockname()[1]),
        ):
            pass


def test_every_metric_and_outcome_of_the_example_alerts_exists(observed: Vademecum, metrics: Metrics) -> None:
    text = RULES.read_text()
    known = {name for name, _ in samples(served(metrics, free_port()))} | {
        # Families with labels have no samples before something was counted.
        f"vademecum_{name}"
        for name in ("http_requests_total", "tool_call_seconds_bucket", "oauth_steps_total")
    }
    assert set(re.findall(r"vademecum_\w+", text)) <= known
    outcomes = {each.outcome for each in EVENTS.values()} | {"invalid_grant"}
    for written in re.findall(r'outcome=~?"([^"]+)"', text):
        assert set(written.split("|")) <= outcomes
