"""`vademecum reindex` against another model: killed, gone on with, and a server answering all the while."""

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Client, client_of, mortal_server, serving
from tests.crash.test_instances import SETTINGS
from tests.engines import FirestoreEmulator
from tests.processes import PASSPHRASE, Server
from tests.store.fakes import FakeEmbedder
from tests.store.stub import Answer, Service
from tests.store.stub import serving as answering

MEMORIES = 150
"""Three batches."""


@dataclass
class Vectors:
    """Answers as an embedding service would, and kills who asks once too often."""

    victim: subprocess.Popen[bytes] | None = None
    until_death: int = 0

    def __call__(self, body: Any) -> Answer:
        if self.victim is not None:
            self.until_death -= 1
            if self.until_death < 0:
                self.victim.send_signal(signal.SIGKILL)
        made = FakeEmbedder(dimensions=body["dimensions"]).embed_passages(body["input"])
        return 200, {"data": [{"index": at, "embedding": row.tolist()} for at, row in enumerate(made)]}


@pytest.fixture
def service() -> Iterator[Service]:
    with answering() as service:
        yield service


@pytest.fixture(params=["sqlite", "firestore"])
def server(request: pytest.FixtureRequest, tmp_path: Path, service: Service) -> Iterator[Server]:
    """An installation whose first model makes vectors of 64 dimensions."""
    settings = {
        "VADEMECUM_EMBEDDER": "openai",
        "VADEMECUM_OPENAI_BASE_URL": service.url,
        "VADEMECUM_EMBEDDING_DIMENSIONS": "64",
    }
    if request.param == "firestore":
        emulator = request.getfixturevalue("firestore")
        assert isinstance(emulator, FirestoreEmulator)
        settings |= SETTINGS
    server = mortal_server(tmp_path / "state", None, **settings)
    server.state_dir.mkdir()
    server.run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    with serving(server):
        yield server


@pytest.fixture
def client(server: Server, service: Service) -> Iterator[Client]:
    service.answers = [Vectors()]
    with client_of(server) as client:
        yield client


def found(client: Client, access_token: str) -> list[str]:
    answer = client.call(access_token, "search_context", query="spare key number 7")
    return [match["id"] for match in answer["structuredContent"]["matches"]]


def test_it_is_killed_gone_on_with_and_a_server_answers_meanwhile(
    server: Server, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    contents = (f"spare key number {number} hangs in the hall" for number in range(MEMORIES))
    rows.write_text("".join(json.dumps({"content": content}) + "\n" for content in contents))
    server.run("import", str(rows))
    access_token = client.connect()["access_token"]
    before = found(client, access_token)

    changed = mortal_server(
        server.state_dir, server.port, **{**server.environment, "VADEMECUM_EMBEDDING_DIMENSIONS": "32"}
    )
    killer = Vectors(until_death=1)
    service.answers = [killer]
    killer.victim = subprocess.Popen((*changed.command, "reindex"), env=changed.env())
    assert killer.victim.wait(60) == -signal.SIGKILL
    service.answers = [Vectors()]
    assert before and found(client, access_token)

    again = json.loads(changed.run("reindex", "--json"))
    assert again == {"model": "openai:text-embedding-3-small:32", "owed": 86, "embedded": 86, "left": 0}
    assert found(client, access_token)[0] == before[0]
    # The server with the old settings has not begun to undo it.
    assert json.loads(changed.run("reindex", "--json"))["owed"] == 0
    server.stop()
    with serving(changed):
        assert found(client, access_token)[0] == before[0]
