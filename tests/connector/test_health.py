"""Readiness means something, and asking for it all day costs nothing."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from connector.health import FAILED_SECONDS, PASSED_SECONDS, Readiness, routes


class Checked:
    """Two checks and a clock, as the test sets them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.passes = {"database": True, "state_key": True}
        self.asked = 0
        checks = {"database": self.database, "state_key": lambda: self.passes["state_key"]}
        self.readiness = Readiness(checks, lambda: self.seconds)

    def database(self) -> bool:
        self.asked += 1
        return self.passes["database"]


@pytest.fixture
def checked() -> Checked:
    return Checked()


def test_ready_is_503_and_says_which_check_fails_while_live_stays_200(checked: Checked) -> None:
    http = TestClient(Starlette(routes=routes(checked.readiness, "1.2.3")))
    well = http.get("/health/ready")
    assert (well.status_code, well.json()["checks"]) == (200, {"database": "ok", "state_key": "ok"})

    checked.passes["state_key"] = False
    checked.seconds += PASSED_SECONDS
    for path in ("/health/ready", "/health"):
        ill = http.get(path)
        assert (ill.status_code, ill.json()["checks"]) == (503, {"database": "ok", "state_key": "failed"})
        assert ill.headers["cache-control"] == "no-store"
    assert http.get("/health/live").status_code == 200


def test_the_database_is_asked_once_in_a_few_seconds_however_often_somebody_looks(checked: Checked) -> None:
    for _ in range(100):
        assert all(checked.readiness().values())
    assert checked.asked == 1


def test_what_has_failed_is_looked_at_again_sooner(checked: Checked) -> None:
    checked.passes["database"] = False
    assert not checked.readiness()["database"]
    checked.passes["database"] = True
    assert not checked.readiness()["database"]
    checked.seconds += FAILED_SECONDS
    assert checked.readiness()["database"]
