"""Refused requests are kept for the owner, without what they held, and a flood of them is a number."""

from connector.app import Vademecum
from tests.flows.conftest import Host

SECRET = "vmc_pat_not.a-token"


def test_refusals_are_kept_with_path_and_status_and_nothing_of_the_request(
    host: Host, parts: Vademecum
) -> None:
    host.http.post("/mcp", headers={"Authorization": f"Bearer {SECRET}"})
    host.http.post("/token", data={"grant_type": "password", "password": SECRET})
    host.http.get("/no-such-page")
    parts.activity.flush()
    kept = parts.events.rejections(10)
    assert [(each.name, each.reason) for each in kept] == [("/token", "400"), ("/mcp", "401")]
    assert all(each.request_id for each in kept)
    assert SECRET not in str(kept)


def test_a_flood_of_refusals_is_counted(host: Host, parts: Vademecum) -> None:
    for _ in range(200):
        host.http.post("/mcp")
    parts.activity.flush()
    assert len(parts.events.rejections(1000)) == 60
    assert parts.events.rejections_beyond() == 140
