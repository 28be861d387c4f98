"""The stand that every test of the authorization server stands on."""

import pytest
from starlette.testclient import TestClient

from oauth.server import AuthorizationServer
from tests.oauth.stand import Clock, Host, MemoryRecords, make_http, make_server
from tests.oauth.web import Web


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def records(clock: Clock) -> MemoryRecords:
    return MemoryRecords(clock)


@pytest.fixture
def server(records: MemoryRecords, clock: Clock, web: Web) -> AuthorizationServer:
    return make_server(records, clock, fetcher=web.fetcher())


@pytest.fixture
def http(server: AuthorizationServer, clock: Clock) -> TestClient:
    return make_http(server, clock.monotonic)


@pytest.fixture
def host(server: AuthorizationServer, http: TestClient) -> Host:
    """A registered public client."""
    host = Host(server, http)
    assert host.register().status_code == 201
    return host


@pytest.fixture
def other_host(server: AuthorizationServer, http: TestClient) -> Host:
    """Another one."""
    host = Host(server, http)
    assert host.register(client_name="Another host").status_code == 201
    return host


@pytest.fixture
def secret_host(server: AuthorizationServer, http: TestClient) -> Host:
    """A client with a secret."""
    host = Host(server, http)
    assert host.register(token_endpoint_auth_method="client_secret_post").status_code == 201
    return host


@pytest.fixture
def web() -> Web:
    """Other people's hosts."""
    return Web()
