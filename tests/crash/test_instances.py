"""Two instances on one Firestore behind nginx, which hands every request to the next of them."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.crash.conftest import Client, assert_invalid_grant, client_of, mortal_server, serving, turn_clock
from tests.engines import FIRESTORE_PROJECT, FirestoreEmulator
from tests.fronts import nginx
from tests.processes import PASSPHRASE, Server, free_port

LIVENESS_SECONDS = 5
SETTINGS = {
    "VADEMECUM_STORE": "firestore",
    "VADEMECUM_FIRESTORE_PROJECT": FIRESTORE_PROJECT,
    "VADEMECUM_STATE_KEY": base64.urlsafe_b64encode(bytes(range(32))).decode(),
    "VADEMECUM_TRUSTED_PROXIES": "loopback",
}
NGINX = """
upstream instances {{
  server 127.0.0.1:{first} max_fails=0;
  server 127.0.0.1:{second} max_fails=0;
}}
server {{
  listen 127.0.0.1:{port};
  location / {{
    proxy_pass http://instances;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_next_upstream error timeout non_idempotent;
  }}
}}
"""


@dataclass(frozen=True)
class Installation:
    """Two instances, and the address that the world knows."""

    first: Server
    second: Server
    front: Server

    def turn_clock(self, seconds: float) -> None:
        for server in (self.first, self.second):
            turn_clock(server.state_dir, seconds=seconds)


@pytest.fixture
def installation_of_two(firestore: FirestoreEmulator, tmp_path: Path) -> Iterator[Installation]:
    front = Server(tmp_path, port=free_port())
    settings = {**SETTINGS, "VADEMECUM_PUBLIC_URL": front.url}
    pair = [mortal_server(tmp_path / name, None, **settings) for name in ("first", "second")]
    for server in pair:
        server.state_dir.mkdir()
    pair[0].run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    configuration = NGINX.format(port=front.port, first=pair[0].port, second=pair[1].port)
    with nginx(tmp_path, configuration), serving(*pair):
        yield Installation(pair[0], pair[1], front)


@pytest.fixture
def client(installation_of_two: Installation) -> Iterator[Client]:
    with client_of(installation_of_two.front) as client:
        yield client


def saved(client: Client, access_token: str, content: str) -> str:
    answer = client.call(access_token, "save_context", content=content)
    assert not answer.get("isError"), answer
    memory_id: str = answer["structuredContent"]["item"]["id"]
    return memory_id


def found(client: Client, access_token: str, query: str) -> list[str]:
    answer = client.call(access_token, "search_context", query=query)
    return [match["id"] for match in answer["structuredContent"]["matches"]]


def test_the_whole_journey_over_instances_that_take_turns(
    client: Client, installation_of_two: Installation
) -> None:
    tokens = client.connect()
    memory_id = saved(client, tokens["access_token"], "the spare key hangs behind the pantry door")
    for _ in range(4):
        assert found(client, tokens["access_token"], "spare key") == [memory_id]

    for _ in range(3):
        tokens = client.refresh(tokens["refresh_token"]).json()
        assert client.is_alive(tokens["access_token"])
    held = tokens["refresh_token"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.refresh(held), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1
    tokens = answers[0].json()

    # A new signing key, known to both at once and signing after a minute; nobody is signed out.
    installation_of_two.first.run("keys", "rotate")
    installation_of_two.turn_clock(seconds=61)
    for _ in range(4):
        tokens = client.refresh(tokens["refresh_token"]).json()
        assert client.is_alive(tokens["access_token"])

    # What is revoked through one is refused by both, five seconds later at most.
    client.revoke(tokens["refresh_token"], installation_of_two.first)
    installation_of_two.turn_clock(seconds=61 + LIVENESS_SECONDS)
    for server in (installation_of_two.first, installation_of_two.second):
        assert not client.is_alive(tokens["access_token"], server)
        assert_invalid_grant(client.refresh(tokens["refresh_token"], server))


def test_one_instance_killed_in_between_loses_nothing_and_signs_nobody_out(
    client: Client, installation_of_two: Installation
) -> None:
    tokens = client.connect()
    before = saved(client, tokens["access_token"], "the gate code is 4711")
    code = client.code()
    installation_of_two.first.kill()
    assert client.redeem(code).status_code == 200
    after = saved(client, tokens["access_token"], "the cellar light is on the left")
    tokens = client.refresh(tokens["refresh_token"]).json()
    installation_of_two.first.start()
    installation_of_two.second.kill()
    for server in (None, installation_of_two.first):
        assert client.is_alive(tokens["access_token"], server)
    assert found(client, tokens["access_token"], "gate code") == [before]
    assert found(client, tokens["access_token"], "cellar light") == [after]
    assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_a_code_that_both_are_shown_at_once_has_one_winner_at_most(
    client: Client, installation_of_two: Installation
) -> None:
    code = client.code()
    pair = (installation_of_two.first, installation_of_two.second)

    def redeem(number: int) -> httpx2.Response:
        return client.redeem(code, pair[number % 2])

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(redeem, range(8)))
    assert sum(answer.status_code == 200 for answer in answers) <= 1
    for answer in answers:
        if answer.status_code != 200:
            assert_invalid_grant(answer)
