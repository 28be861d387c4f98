"""A Firestore project that lacks something, behind a stand-in for Google's admin API."""

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.auth.credentials import AnonymousCredentials

from connector import models
from connector.app import utc_now
from connector.doctor.firestore import examine_project
from connector.doctor.installation import examine_installation
from connector.doctor.report import Check
from connector.settings import Settings
from store.embedders import gemini
from store.embedders.local import LocalEmbedder
from store.firestore.deployed import Deployed
from store.firestore.shapes import EXPIRING, index_file
from tests.engines import FIRESTORE_PROJECT, FirestoreEmulator

DATABASE = f"projects/{FIRESTORE_PROJECT}/databases/(default)/collectionGroups"
PAGE = 5


@dataclass
class Admin:
    """What the API lists, page by page, as the documentation describes it."""

    indexes: list[dict[str, Any]] = field(default_factory=list)
    fields: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    url: str = ""

    def deploy(self, file: dict[str, Any]) -> None:
        for number, index in enumerate(file["indexes"]):
            *others, last = index["fields"]
            is_vector = "vectorConfig" in last
            name = {"fieldPath": "__name__", "order": last.get("order", "ASCENDING")}
            described = {
                "name": f"{DATABASE}/{index['collectionGroup']}/indexes/{number}",
                "queryScope": index["queryScope"],
                "fields": [*others, name, last] if is_vector else [*others, last, name],
                "state": "READY",
            }
            self.indexes.append(described)
        for override in file["fieldOverrides"]:
            indexes = [
                {
                    "queryScope": each["queryScope"],
                    "fields": [{"fieldPath": override["fieldPath"], "order": each["order"]}],
                    "state": "READY",
                }
                for each in override["indexes"]
            ]
            described = {
                "name": f"{DATABASE}/{override['collectionGroup']}/fields/{override['fieldPath']}",
                "indexConfig": {"indexes": indexes},
            }
            self.fields.append(described | ({"ttlConfig": {"state": "ACTIVE"}} if "ttl" in override else {}))

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if self.status != 200:
            return self.status, {
                "error": {"code": self.status, "message": "no", "status": "PERMISSION_DENIED"}
            }
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        what = parts.path.rpartition("/")[2]
        if what == "fields":
            assert query["filter"] == ["indexConfig.usesAncestorConfig:false OR ttlConfig:*"]
        start = int(query.get("pageToken", ["0"])[0])
        listed = {"indexes": self.indexes, "fields": self.fields}[what]
        more = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(listed) else {}
        return 200, {what: listed[start : start + PAGE], **more}


@contextmanager
def serving(admin: Admin) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, answer = admin.answer(self.path)
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    admin.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def admin() -> Iterator[Admin]:
    """A project to which the whole file has been deployed."""
    admin = Admin()
    admin.deploy(index_file())
    with serving(admin):
        yield admin


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path, store="firestore", firestore_project=FIRESTORE_PROJECT)


def examined(admin: Admin, settings: Settings) -> list[Check]:
    def look(project: str, database: str) -> Deployed:
        return Deployed(project, database, AnonymousCredentials(), admin.url)  # type: ignore[no-untyped-call]

    return [*examine_project(settings, look)]


def bad(admin: Admin, settings: Settings) -> list[Check]:
    return [check for check in examined(admin, settings) if check.result != "ok"]


def test_a_project_to_which_the_file_was_deployed_lacks_nothing(admin: Admin, settings: Settings) -> None:
    checks = examined(admin, settings)
    assert [(check.name, check.result) for check in checks] == [
        ("firestore_indexes", "ok"),
        ("firestore_expiry", "ok"),
    ]


def test_each_index_that_is_missing_is_named_with_the_command_that_makes_it(
    admin: Admin, settings: Settings
) -> None:
    paths = ("model", "shelf", "state", "vector_384")
    gone = [
        each
        for each in admin.indexes
        if tuple(of["fieldPath"] for of in each["fields"] if of["fieldPath"] != "__name__") == paths
    ]
    assert len(gone) == 1
    admin.indexes.remove(gone[0])
    (check,) = bad(admin, settings)
    assert (check.name, check.result) == ("firestore_indexes", "failed")
    assert shlex.split(check.mend.removeprefix("Run: ")) == [
        "gcloud", "firestore", "indexes", "composite", "create",
        "--collection-group=passages", "--query-scope=collection",
        "--field-config=order=ascending,field-path=model",
        "--field-config=order=ascending,field-path=shelf",
        "--field-config=order=ascending,field-path=state",
        '--field-config=field-path=vector_384,vector-config={"dimension":"384","flat":"{}"}',
        "--database=(default)", f"--project={FIRESTORE_PROJECT}",
    ]  # fmt: skip


def test_an_empty_project_lacks_every_index_that_its_own_embedder_needs(settings: Settings) -> None:
    admin = Admin()
    with serving(admin):
        lacked = bad(admin, settings)
        without_vectors = bad(admin, settings.model_copy(update={"embedder": "none"}))
    ours = index_file((384,))["indexes"]
    assert len([each for each in lacked if each.name == "firestore_indexes"]) == len(ours) + 1
    assert len([each for each in lacked if each.name == "firestore_expiry"]) == len(EXPIRING)
    assert len(without_vectors) < len(lacked)
    (across,) = (each for each in lacked if "COLLECTION_GROUP" in each.mend)
    assert across.mend.startswith("Run: curl -X PATCH")


def test_lengths_are_known_without_loading_a_model() -> None:
    assert (LocalEmbedder.dimensions, gemini.DIMENSIONS) == (
        models.LOCAL_DIMENSIONS,
        models.GEMINI_DIMENSIONS,
    )


def test_an_expiry_that_is_off_is_named_with_the_command_that_turns_it_on(
    admin: Admin, settings: Settings
) -> None:
    for each in admin.fields:
        if each["name"].endswith("/events/fields/expires_at"):
            del each["ttlConfig"]
    (check,) = bad(admin, settings)
    assert (check.name, check.result) == ("firestore_expiry", "failed")
    assert shlex.split(check.mend.removeprefix("Run: ")) == [
        "gcloud", "firestore", "fields", "ttls", "update", "expires_at",
        "--collection-group=events", "--enable-ttl",
        "--database=(default)", f"--project={FIRESTORE_PROJECT}",
    ]  # fmt: skip


def test_what_is_being_built_is_only_waited_for(admin: Admin, settings: Settings) -> None:
    admin.indexes[0]["state"] = "CREATING"
    (check,) = bad(admin, settings)
    assert check.result == "warning" and "being built" in check.said


def test_who_may_not_look_is_told_so(admin: Admin, settings: Settings) -> None:
    admin.status = 403
    checks = examined(admin, settings)
    assert [(check.name, check.result) for check in checks] == [
        ("firestore_indexes", "warning"),
        ("firestore_expiry", "skipped"),
    ]
    assert "PermissionDenied" in checks[0].said or "Forbidden" in checks[0].said


def test_the_doctor_looks_at_the_project_of_the_installation(
    admin: Admin, firestore: FirestoreEmulator, tmp_path: Path
) -> None:
    environ = {
        "VADEMECUM_STATE_DIR": str(tmp_path),
        "VADEMECUM_EMBEDDER": "none",
        "VADEMECUM_STORE": "firestore",
        "VADEMECUM_FIRESTORE_PROJECT": FIRESTORE_PROJECT,
    }
    admin.indexes.clear()

    def look(project: str, database: str) -> Deployed:
        assert (project, database) == (FIRESTORE_PROJECT, "(default)")
        return Deployed(project, database, AnonymousCredentials(), admin.url)  # type: ignore[no-untyped-call]

    found = [*examine_installation(environ, utc_now, look)]
    assert any(each.name == "firestore_indexes" and each.result == "failed" for each in found)
    assert not [each for each in examine_installation(environ, utc_now) if each.name == "firestore_indexes"]
