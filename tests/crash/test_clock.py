"""The clock goes on, and sometimes back: what is spent, ended or expired stays so, and logins live."""

from datetime import timedelta

import pytest

from tests.crash.conftest import Client, assert_invalid_grant, turn_clock
from tests.processes import Server

DAY = timedelta(days=1).total_seconds()
HOUR = timedelta(hours=1).total_seconds()


@pytest.mark.threat("CL-01")
def test_a_clock_set_back_a_day_brings_nothing_back(client: Client, server: Server) -> None:
    spent, forgotten = client.code(), client.code()
    tokens = client.redeem(spent).json()
    ended = client.connect()
    assert client.is_alive(tokens["access_token"]) and client.is_alive(ended["access_token"])
    client.revoke(ended["refresh_token"])
    turn_clock(server.state_dir, seconds=61)
    assert_invalid_grant(client.redeem(forgotten))
    turn_clock(server.state_dir, seconds=HOUR + 61)
    assert not client.is_alive(tokens["access_token"])
    refreshed = client.refresh(tokens["refresh_token"]).json()
    newest = client.refresh(refreshed["refresh_token"]).json()

    turn_clock(server.state_dir, seconds=-DAY)
    for _ in range(2):
        assert not client.is_alive(tokens["access_token"])
        assert not client.is_alive(ended["access_token"])
        assert_invalid_grant(client.refresh(ended["refresh_token"]))
        assert_invalid_grant(client.redeem(forgotten))
        server.kill()
        server.start()
    # The login lives, and a new one can be made, in whatever time it is.
    now = client.refresh(newest["refresh_token"]).json()
    assert client.is_alive(now["access_token"])
    assert client.is_alive(client.connect()["access_token"])
    # What is spent is spent: a replay ends all that came of it.
    assert_invalid_grant(client.refresh(refreshed["refresh_token"]))
    assert not client.is_alive(now["access_token"])
    assert_invalid_grant(client.redeem(spent))


@pytest.mark.threat("CL-01")
def test_clocks_may_differ_by_a_minute_and_expiry_is_strict(client: Client, server: Server) -> None:
    tokens = client.connect()
    turn_clock(server.state_dir, seconds=-50)
    assert client.is_alive(tokens["access_token"])
    turn_clock(server.state_dir, seconds=HOUR - 30)
    assert client.is_alive(tokens["access_token"])
    turn_clock(server.state_dir, seconds=HOUR)
    assert not client.is_alive(tokens["access_token"])


@pytest.mark.threat("RF-10")
def test_a_login_sleeps_for_weeks_but_not_for_months(client: Client, server: Server) -> None:
    tokens = client.connect()
    turn_clock(server.state_dir, seconds=29 * DAY)
    refreshed = client.refresh(tokens["refresh_token"])
    assert refreshed.status_code == 200
    turn_clock(server.state_dir, seconds=(29 + 30) * DAY + 60)
    assert_invalid_grant(client.refresh(refreshed.json()["refresh_token"]))
