"""What an owner allows an app holds at every call, whatever its login allows."""

import json
from typing import Any

import pytest

from connector.app import Vademecum
from connector.tools.catalogue import TOOLS
from store.memory import Draft, Source
from tests.connector.commands.conftest import Run
from tests.flows.conftest import Host


@pytest.fixture
def run(parts: Vademecum, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr("connector.commands.clients.open_installation", lambda: parts)
    return Run(monkeypatch, capsys)


class App:
    """A connected app, and the owner at the terminal who says what it may do."""

    def __init__(self, host: Host, parts: Vademecum, run: Run) -> None:
        self.host, self.parts, self.run = host, parts, run
        self.token = host.connect()["access_token"]
        (connected,) = run.json("clients", "list")
        self.connection = connected["id"]

    def hold_to(self, *options: str) -> Any:
        profile = self.run.json("clients", "profile", self.connection, *options)
        # Another process would notice within five seconds.
        self.parts.authorization_server.tell_grant_changed(self.connection)
        return profile

    def listed(self) -> list[str]:
        return [tool["name"] for tool in self.host.mcp(self.token, "tools/list").json()["result"]["tools"]]

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self.host.call(self.token, tool, **arguments)
        return json.loads(result["content"][0]["text"])


@pytest.fixture
def app(host: Host, parts: Vademecum, run: Run) -> App:
    return App(host, parts, run)


def test_an_app_without_limits_shows_none(app: App) -> None:
    assert app.hold_to() == {
        "tools": None,
        "states": None,
        "spaces": None,
        "origins": None,
        "surface": "default",
        "episodes": False,
    }


def test_only_the_tools_of_the_profile_are_listed_and_answer(app: App) -> None:
    app.hold_to("--tool", "search_context", "--tool", "memory_status")
    assert app.listed() == ["search_context", "memory_status"]
    assert app.call("save_context", content="x")["error"]["code"] == "forbidden"
    app.hold_to("--reset")
    assert app.call("save_context", content="x")["write_status"] == "created"


def test_the_full_surface_lists_what_the_permissions_allow_and_nothing_else(app: App) -> None:
    app.hold_to("--surface", "full")
    allowed = {name for name, tool in TOOLS.items() if tool.scope in ("memory:read", "memory:write")}
    assert set(app.listed()) == allowed


def test_states_and_origins_of_the_profile_hide_the_rest(app: App, parts: Vademecum) -> None:
    owner = parts.owners.list()[0].id
    space = parts.engine.spaces(owner)[0].id
    parts.engine.save(owner, space, "cli", Draft("imported gate code 4711", source=Source(origin="import")))
    parts.engine.save(owner, space, "cli", Draft("own gate code 1234", source=Source(origin="user")))
    app.hold_to("--origin", "user", "--state", "active")
    assert [m["summary"] for m in app.call("search_context", query="gate code")["matches"]] == [
        "own gate code 1234"
    ]
    refused = app.call("search_context", query="gate code", filter_state="wip")
    assert refused["error"]["code"] == "forbidden"


def test_a_space_outside_the_profile_cannot_be_used(app: App, parts: Vademecum) -> None:
    owner = parts.owners.list()[0].id
    parts.engine.memories.add_space(owner, "private")
    app.hold_to("--space", "default")
    assert app.call("use_space", space="private")["error"]["code"] == "not_found"
    assert [space["name"] for space in app.call("memory_status")["spaces"]] == ["default"]


def test_turns_of_conversations_are_off_until_the_owner_turns_them_on(app: App) -> None:
    turn = {"session_id": "s", "role": "user", "content": "hello"}
    assert app.call("store_episode", **turn)["error"]["code"] == "forbidden"
    assert app.call("list_episodes", session_id="s")["error"]["code"] == "forbidden"
    app.hold_to("--episodes")
    assert app.call("store_episode", **turn) == {"turn": 1, "write_status": "created"}
    app.hold_to("--tool", "list_episodes")
    (kept,) = app.call("list_episodes", session_id="s")["turns"]
    assert (kept["role"], kept["content"], kept["client_name"]) == ("user", "hello", "Test host")


def test_what_does_not_exist_is_refused_and_changes_nothing(app: App, run: Run) -> None:
    for option, wrong in (("--tool", "x"), ("--state", "x"), ("--space", "x"), ("--surface", "x")):
        code, _, err = run("clients", "profile", app.connection, option, wrong)
        assert code == 1 and "no " in err
    assert app.hold_to()["tools"] is None
