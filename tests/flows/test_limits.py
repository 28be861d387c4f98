"""Floods end in 429 while everybody else goes on, and only a trusted proxy says who somebody is."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from tests.connector.pages.stand import Person
from tests.flows.conftest import PUBLIC_URL, Clock, Host

REGISTRATION = {"redirect_uris": ["https://client.example/cb"]}


@contextmanager
def serving(parts: Vademecum) -> Iterator[Starlette]:
    """The application; one for all addresses, as counters are the process's."""
    app = create_app(parts)
    with TestClient(app, base_url=PUBLIC_URL):
        yield app


def at(app: Starlette, address: str) -> TestClient:
    """A client whose connections come from this address."""
    return TestClient(app, base_url=PUBLIC_URL, follow_redirects=False, client=(address, 50000))


def behind_proxy(parts: Vademecum) -> AbstractContextManager[Starlette]:
    trusted = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"))
    settings = parts.settings.model_copy(update={"trusted_proxies": trusted})
    return serving(replace(parts, settings=settings))


@pytest.mark.threat("DC-13")
def test_a_registration_flood_ends_whatever_it_says_of_itself_and_everybody_else_goes_on(
    parts: Vademecum, clock: Clock
) -> None:
    with serving(parts) as app:
        host = Host(at(app, "203.0.113.9"))
        tokens = host.connect()
        flood = at(app, "203.0.113.9")
        statuses = []
        for number in range(300):
            forged = {"X-Forwarded-For": f"198.51.100.{number % 250}", "X-Real-IP": f"192.0.2.{number % 250}"}
            refused = flood.post("/register", json=REGISTRATION, headers=forged)
            statuses.append(refused.status_code)
        assert statuses == [201] * 199 + [429] * 101, "the first of the burst was the connected client"
        assert refused.json()["error"] == "temporarily_unavailable"
        assert refused.headers["retry-after"] == "10"
        assert refused.headers["cache-control"] == "no-store"

        assert not host.call(tokens["access_token"], "save_context", content="still here").get("isError")
        refreshed = host.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        assert refreshed.status_code == 200
        assert host.authorize()["code"]
        assert at(app, "203.0.113.10").post("/register", json=REGISTRATION).status_code == 201
        clock.advance(seconds=10)
        assert flood.post("/register", json=REGISTRATION).status_code == 201
        assert flood.post("/register", json=REGISTRATION).status_code == 429


@pytest.mark.threat("DC-13")
@pytest.mark.threat("HH-02")
def test_behind_a_trusted_proxy_each_client_has_a_burst_of_its_own_and_none_by_a_lie(
    parts: Vademecum,
) -> None:
    with behind_proxy(parts) as app:
        proxy = at(app, "127.0.0.1")

        def register(forwarded: str) -> int:
            return proxy.post(
                "/register", json=REGISTRATION, headers={"X-Forwarded-For": forwarded}
            ).status_code

        assert {register("203.0.113.9") for _ in range(200)} == {201}
        assert register("203.0.113.9") == 429
        assert register("203.0.113.10") == 201
        assert register("198.51.100.1, 203.0.113.9") == 429, "the left of the list is the client's own word"
        assert register("203.0.113.9, 10.0.0.3") == 429, "a second trusted proxy on the way"


def test_fifty_users_behind_one_address_refresh_by_the_hour(parts: Vademecum, clock: Clock) -> None:
    with serving(parts) as app:
        host = Host(at(app, "203.0.113.9"))
        host.register()
        tokens = [host.redeem(host.authorize()["code"]) for _ in range(50)]
        for _ in range(3):
            clock.advance(hours=1)
            answers = [
                host.token(grant_type="refresh_token", refresh_token=each["refresh_token"]) for each in tokens
            ]
            assert {answer.status_code for answer in answers} == {200}
            tokens = [answer.json() for answer in answers]
        assert {host.mcp(each["access_token"], "tools/list").status_code for each in tokens} == {200}


@pytest.mark.threat("DS-07")
def test_authorization_requests_without_end_are_told_to_wait_and_hundreds_a_minute_are_not(
    parts: Vademecum, clock: Clock
) -> None:
    with serving(parts) as app:
        host = Host(at(app, "203.0.113.9"))
        host.register()
        url = host.authorization_url()
        flood = at(app, "203.0.113.9")
        assert {flood.get(url).status_code for _ in range(600)} == {303}
        refused = flood.get(url)
        assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
        assert refused.headers["content-type"].startswith("text/html") and "location" not in refused.headers
        assert at(app, "203.0.113.10").get(url).status_code == 303
        for _ in range(2):
            clock.advance(minutes=1)
            assert {flood.get(url).status_code for _ in range(300)} == {303}


@pytest.mark.threat("DS-07")
def test_a_request_that_waited_ten_minutes_is_no_longer_decided(
    host: Host, http: TestClient, clock: Clock
) -> None:
    host.register()
    person = Person(http, PUBLIC_URL)
    question = person.consent_page(host.authorization_url())
    clock.advance(minutes=10, seconds=1)
    late = person.submit(question, decision="allow")
    assert late.status_code == 400 and "location" not in late.headers
