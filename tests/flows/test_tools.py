"""The tools of the full surface through the MCP endpoint: what they answer, and how they refuse."""

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from connector.app import Vademecum
from oauth import personal_tokens
from oauth.personal_tokens import Profile
from store.errors import StoreError
from tests.flows.conftest import Clock, Host

ALL = frozenset({"memory:read", "memory:write", "memory:maintain", "memory:export", "memory:delete"})
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def owner(parts: Vademecum) -> str:
    return parts.owners.list()[0].id


@pytest.fixture
def token(parts: Vademecum, owner: str) -> str:
    return personal_tokens.create(parts.authorization_server, owner, "Agent", Profile(ALL))[1]


@pytest.fixture
def ask(host: Host, token: str) -> Ask:
    def asked(tool: str, **arguments: Any) -> dict[str, Any]:
        result = host.call(token, tool, **arguments)
        told: dict[str, Any] = json.loads(result["content"][0]["text"])
        if result.get("isError"):
            assert "structuredContent" not in result
            error: dict[str, Any] = told["error"]
            return error
        assert result["structuredContent"] == told
        return told

    return asked


def save(ask: Ask, content: str, **arguments: Any) -> str:
    saved: str = ask("save_context", content=content, **arguments)["item"]["id"]
    return saved


def picture(form: str = "PNG", size: tuple[int, int] = (8, 8)) -> str:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, form)
    return base64.b64encode(file.getvalue()).decode()


class Eye:
    """A model that sees, as far as the engine knows."""

    name = "eye"

    def __init__(self, says: str | None) -> None:
        self.says = says

    def describe(self, image: bytes, media_type: str) -> str:
        if self.says is None:
            raise StoreError("unavailable", "away")
        return self.says


class Pen:
    """A model that writes, as far as the engine knows."""

    name = "pen"

    def __init__(self, writes: str) -> None:
        self.writes = writes
        self.read: list[str] = []

    def write(self, task: str, texts: Any) -> str:
        self.read = [*texts]
        return self.writes


def test_an_image_is_found_by_what_a_model_saw_in_it(ask: Ask, parts: Vademecum) -> None:
    parts.engine.vision_model = Eye("A red square on a kitchen door")
    saved = ask("save_context", image_base64=picture(), image_mime_type="image/png", topic="home")
    assert saved["item"]["metadata"]["modality"] == "image" and "note" not in saved
    (found,) = ask("search_context", query="kitchen door")["matches"]
    assert found["id"] == saved["item"]["id"]
    fetched = ask("fetch_context", id=found["id"])["item"]
    assert fetched["retrieval_text"] == "A red square on a kitchen door"
    again = ask("save_context", image_base64=picture(), image_mime_type="image/png", topic="home")
    assert (again["write_status"], again["item"]["id"]) == ("duplicate", found["id"])


@pytest.mark.parametrize("eye", [None, Eye(None)])
def test_an_image_that_was_not_read_needs_content_and_the_answer_says_so(
    ask: Ask, parts: Vademecum, eye: Eye | None
) -> None:
    parts.engine.vision_model = eye
    image = {"image_base64": picture("JPEG"), "image_mime_type": "image/jpeg"}
    saved = ask("save_context", content="the red door", **image)
    assert "The image was not read" in saved["note"]
    refused = ask("save_context", **image)
    assert refused["code"] == ("invalid_argument" if eye is None else "unavailable")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_argument"),
        ({"content": "x", "image_base64": picture()}, "invalid_argument"),
        ({"content": "x", "image_mime_type": "image/png"}, "invalid_argument"),
        ({"content": "x", "image_base64": "?", "image_mime_type": "image/png"}, "invalid_argument"),
        ({"content": "x", "image_base64": "AAAA", "image_mime_type": "image/png"}, "invalid_argument"),
        (
            {"content": "x", "image_base64": picture("GIF"), "image_mime_type": "image/png"},
            "invalid_argument",
        ),
        ({"content": "x", "image_base64": picture(), "image_mime_type": "image/svg+xml"}, "invalid_argument"),
        (
            {"content": "x", "image_base64": picture(size=(9000, 9000)), "image_mime_type": "image/png"},
            "too_large",
        ),
        (
            {
                "content": "x",
                "image_base64": base64.b64encode(bytes(2 * 1024 * 1024 + 1)).decode(),
                "image_mime_type": "image/png",
            },
            "too_large",
        ),
    ],
)
def test_what_is_no_image_is_refused_and_nothing_is_stored(
    ask: Ask, arguments: dict[str, Any], code: str
) -> None:
    assert ask("save_context", **arguments)["code"] == code
    assert ask("memory_status")["counts"] == {}


def test_a_document_is_ingested_read_forgotten_and_deleted(ask: Ask) -> None:
    text = "# Garden\n\nThe gate code is 4711.\n\n## Roses\n\nRoses are cut in March.\n"
    document = {"title": "Garden", "content": text, "external_id": "garden.md"}
    stored = ask("ingest_document", **document)
    assert stored["write_status"] == "created" and stored["chunks"] >= 1
    assert ask("ingest_document", **document)["write_status"] == "unchanged"
    (match, *_) = ask("search_context", query="when are roses cut")["matches"]
    assert match["metadata"]["document_id"] == stored["document_id"]
    whole = ask("fetch_context", document_id=stored["document_id"])["item"]
    assert whole["content"] == text and whole["metadata"]["title"] == "Garden"
    part = ask("fetch_context", id=stored["document_id"], offset=2, max_chars=6)
    assert (part["item"]["content"], part["next_offset"]) == ("Garden", 8)
    assert ask("forget_context", id=stored["document_id"])["forgotten"]
    assert ask("fetch_context", id=stored["document_id"])["code"] == "not_found"
    assert ask("search_context", query="roses")["matches"] == []
    assert not ask("forget_context", id=stored["document_id"], undo=True)["forgotten"]
    assert ask("delete_context", id=stored["document_id"], confirm="x")["code"] == "invalid_argument"
    assert ask("delete_context", id=stored["document_id"], confirm=stored["document_id"])["deleted"]
    assert ask("forget_context", id=stored["document_id"], undo=True)["code"] == "not_found"
    disagree = ask("ingest_document", **document, source={"external_id": "other"})
    assert disagree["code"] == "invalid_argument"


def test_an_answer_quotes_its_memories_word_for_word_or_abstains(ask: Ask) -> None:
    key = save(ask, "Spare keys. The spare key hangs behind the pantry door. Nobody knows.")
    answer = ask("ask_context", question="where is the spare key")
    assert answer["answer"] == "The spare key hangs behind the pantry door."
    assert answer["citations"] == [{"id": key, "quote": "The spare key hangs behind the pantry door."}]
    abstained = ask("ask_context", question="zygomorphic quasar")
    assert abstained["abstained"] is True and "answer" not in abstained
    assert ask("ask_context", question=" ")["code"] == "invalid_argument"


@pytest.mark.parametrize(
    ("writes", "answers"),
    [
        ("It hangs behind the pantry door [1].", "It hangs behind the pantry door [1]."),
        ("NONE", None),
        ("It is under the mat.", "The spare key hangs behind the pantry door."),
        ("It is under the mat [7].", "The spare key hangs behind the pantry door."),
    ],
)
def test_a_model_s_answer_counts_only_with_citations_that_exist(
    ask: Ask, parts: Vademecum, writes: str, answers: str | None
) -> None:
    pen = Pen(writes)
    parts.engine.language_model = pen
    save(ask, "The spare key hangs behind the pantry door.")
    answer = ask("ask_context", question="where is the spare key")
    assert answer.get("answer") == answers
    assert answer.get("abstained") == (True if answers is None else None)
    assert pen.read == ["where is the spare key", "[1] The spare key hangs behind the pantry door."]


def test_what_waits_for_review_is_never_told_as_fact(ask: Ask) -> None:
    waiting = save(ask, "the spare key is under the mat", source={"origin": "external"})
    assert ask("search_context", query="spare key")["matches"] == []
    assert ask("ask_context", question="where is the spare key")["abstained"]
    (pending,) = ask("search_context", query="spare key", filter_state="pending")["matches"]
    assert (pending["id"], pending["metadata"]["branch_state"]) == (waiting, "pending")
    assert [each["id"] for each in ask("approve_context", ids=[waiting])["items"]] == [waiting]
    assert [each["id"] for each in ask("search_context", query="spare key")["matches"]] == [waiting]
    assert ask("reject_context", ids=[waiting])["code"] == "conflict"


def test_outdated_memories_are_history_and_lead_to_what_took_their_place(ask: Ask) -> None:
    old, new = save(ask, "the gate code is 4711"), save(ask, "the gate code is 1234")
    item = ask("deprecate_context", id=old, superseding_id=new)["item"]
    assert (item["metadata"]["branch_state"], item["metadata"]["superseded_by"]) == ("deprecated", new)
    assert ask("deprecate_context", id=old, superseding_id=new)["item"] == item
    assert ask("deprecate_context", id=new, superseding_id=old)["code"] == "conflict"
    third = save(ask, "the gate code is 9999", supersedes=new)
    assert ask("fetch_context", id=new)["item"]["metadata"]["superseded_by"] == third
    assert [each["id"] for each in ask("search_context", query="gate code")["matches"]] == [third]


def test_memories_are_merged_by_the_caller_s_words_or_a_model_s(ask: Ask, parts: Vademecum) -> None:
    drafts = [save(ask, f"half a thought {number}", draft=True, topic="plan") for number in range(3)]
    assert ask("consolidate_context", topic="plan")["code"] == "invalid_argument"
    merged = ask("consolidate_context", topic="plan", content="the whole thought")
    assert sorted(merged["deprecated"]) == sorted(drafts)
    assert ask("fetch_context", id=drafts[0])["item"]["metadata"]["superseded_by"] == merged["item"]["id"]
    parts.engine.language_model = Pen("one and two")
    ids = [save(ask, "one"), save(ask, "two")]
    assert ask("consolidate_context", source_ids=ids)["item"]["content"] == "one and two"


def test_a_list_goes_on_where_it_was_whatever_is_added_or_removed(ask: Ask, clock: Clock) -> None:
    ids = []
    for number in range(6):
        clock.advance(seconds=1)
        ids.append(save(ask, f"memory {number}"))
    first = ask("list_context", limit=2)
    assert [each["id"] for each in first["items"]] == [ids[5], ids[4]]
    clock.advance(seconds=1)
    save(ask, "a newer one")
    ask("forget_context", id=ids[4])
    second = ask("list_context", limit=2, cursor=first["next_cursor"])
    assert [each["id"] for each in second["items"]] == [ids[3], ids[2]]
    last = ask("list_context", limit=2, cursor=second["next_cursor"])
    assert ([each["id"] for each in last["items"]], last["next_cursor"]) == ([ids[1], ids[0]], None)


@pytest.mark.threat("TN-04")
def test_a_cursor_opens_only_the_list_it_was_made_for(
    ask: Ask, host: Host, parts: Vademecum, clock: Clock
) -> None:
    for number in range(3):
        clock.advance(seconds=1)
        save(ask, f"memory {number}")
    cursor = ask("list_context", limit=1)["next_cursor"]
    stranger = parts.owners.create("test", "issuer", "stranger", "s").id
    theirs = personal_tokens.create(parts.authorization_server, stranger, "Agent", Profile(ALL))[1]
    stolen = host.call(theirs, "list_context", limit=1, cursor=cursor)
    assert json.loads(stolen["content"][0]["text"])["error"]["code"] == "invalid_argument"
    for wrong in (cursor[:-2] + "AA", cursor + "A", "", "…", "A" * 1001):
        assert ask("list_context", limit=1, cursor=wrong)["code"] == "invalid_argument"
    assert ask("list_context", limit=1, cursor=cursor, filter_topic="x")["code"] == "invalid_argument"
    exported = ask("export_context")
    assert exported["next_cursor"] is None
    assert ask("export_context", cursor=cursor)["code"] == "invalid_argument"


def test_everything_is_exported_page_by_page_in_whatever_state(ask: Ask, clock: Clock) -> None:
    saved = []
    for number in range(120):
        clock.advance(seconds=1)
        saved.append(save(ask, f"memory {number}", draft=number % 2 == 0))
    gathered: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = ask("export_context", **cursor)
        gathered += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert gathered == saved
    markdown = ask("export_context", format="markdown")["markdown"]
    assert saved[0] in markdown and "memory 0\n" in markdown


def test_a_profile_names_the_memory_behind_each_line(ask: Ask) -> None:
    fact = save(ask, "lives in Graz", kind="fact")
    style = save(ask, "answers briefly", kind="style")
    save(ask, "half a thought", draft=True)
    told = ask("get_profile")
    assert [(part["title"], [line["id"] for line in part["items"]]) for part in told["sections"]] == [
        ("Facts", [fact]),
        ("Style", [style]),
    ]


def test_capabilities_name_every_tool_and_the_permission_it_needs(ask: Ask, host: Host) -> None:
    told = ask("list_capabilities")
    assert {tool["scope"] for tool in told["tools"]} == set(ALL)
    assert all(tool["allowed"] for tool in told["tools"])
    assert told["scopes"] == sorted(ALL)
