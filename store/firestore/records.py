"""Expiring documents, as `oauth` and the pages need them; of many racing callers one wins, without locks."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_document import DocumentSnapshot

from store.firestore.calls import CALL_SECONDS, Changed
from store.firestore.database import Ask, Fields, FirestoreDatabase, Reference

SWEPT_AT_ONCE = 300
ANY_KIND = "*"
NAMES_OWNER = ("owner", "subject")
"""The fields by which a record says whom it is about."""


class FirestoreRecords:
    """Fits `oauth.records.Records`."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The live value."""
        return self._value(self._database.get(self._reference(kind, key)))

    def create(self, kind: str, key: str, value: Mapping[str, Any], expires_at: datetime) -> bool:
        """Create-if-absent; an expired record gives way.

        Whose record it is tells the stamp, so that an answer that was lost on its way counts for nobody else.
        """
        reference, fields = self._reference(kind, key), _fields(kind, key, value, expires_at)

        def attempt() -> bool:
            try:
                reference.create(fields, retry=None, timeout=CALL_SECONDS)
            except exceptions.AlreadyExists:
                return self._take_over(reference, fields)
            return True

        return self._database.patience.decide(attempt)

    def take(self, kind: str, key: str) -> dict[str, Any] | None:
        """Deletes it as it was read. Should the answer be lost, nobody has it: never two."""
        reference = self._reference(kind, key)

        def attempt() -> dict[str, Any] | None:
            snapshot = reference.get(retry=None, timeout=CALL_SECONDS)
            value = self._value(snapshot)
            if value is not None:
                self._commit(reference, None, snapshot)
            return value

        return self._database.patience.decide(attempt)

    def swap(
        self, kind: str, key: str, old: Mapping[str, Any], new: Mapping[str, Any], expires_at: datetime
    ) -> bool:
        """Compares the canonical JSON, so that the order of members does not matter."""
        reference, fields = self._reference(kind, key), _fields(kind, key, new, expires_at)

        def attempt() -> bool:
            snapshot = reference.get(retry=None, timeout=CALL_SECONDS)
            if self._value(snapshot) is None:
                return False
            if snapshot.get("stamp") == fields["stamp"]:
                return True
            if snapshot.get("value") != _canonical(old):
                return False
            self._commit(reference, fields, snapshot)
            return True

        return self._database.patience.decide(attempt)

    def select(self, kind: str, field: str, equals: str) -> list[dict[str, Any]]:
        """One query by the hash of the three."""
        found = self._database.ask(
            Ask("records", (("fields", "array_contains", _mark(kind, field, equals)),))
        )
        values = (self._value(each) for each in found)
        return [value for value in values if value is not None]

    def delete(self, kind: str, key: str) -> None:
        """No error when absent."""
        reference = self._reference(kind, key)
        self._database.patience.read(lambda: reference.delete(retry=None, timeout=CALL_SECONDS))

    def sweep(self) -> int:
        """Deletes what has expired; returns how many. Firestore's own expiry may be a day late, or off."""
        now, swept = self._database.now(), 0
        while True:
            expired = self._database.ask(
                Ask(
                    "records",
                    (("expires_at", "<=", now),),
                    ("expires_at", "ASCENDING"),
                    limit=SWEPT_AT_ONCE,
                    select=("expires_at",),
                )
            )
            for each in expired:
                try:
                    self._commit(each.reference, None, each)
                    swept += 1
                except Changed:
                    continue
            if len(expired) < SWEPT_AT_ONCE:
                return swept

    def _take_over(self, reference: Reference, fields: Fields) -> bool:
        snapshot = reference.get(retry=None, timeout=CALL_SECONDS)
        if not snapshot.exists:
            raise Changed
        if snapshot.get("stamp") == fields["stamp"]:
            return True
        if self._value(snapshot) is not None:
            return False
        self._commit(reference, fields, snapshot)
        return True

    def _commit(self, reference: Reference, fields: Fields | None, read: DocumentSnapshot[Any]) -> None:
        as_read = firestore.Client.write_option(last_update_time=read.update_time)
        try:
            if fields is None:
                reference.delete(as_read, retry=None, timeout=CALL_SECONDS)
            else:
                reference.update(fields, as_read, retry=None, timeout=CALL_SECONDS)
        except (exceptions.FailedPrecondition, exceptions.NotFound) as error:
            raise Changed from error

    def _reference(self, kind: str, key: str) -> Reference:
        return self._database.document("records", f"{kind}.{hashlib.sha256(key.encode()).hexdigest()}")

    def _value(self, snapshot: DocumentSnapshot[Any]) -> dict[str, Any] | None:
        if not snapshot.exists or snapshot.get("expires_at") <= self._database.now():
            return None
        value: dict[str, Any] = json.loads(snapshot.get("value"))
        return value


def about(database: FirestoreDatabase, owner: str) -> list[Reference]:
    """The records of whatever kind whose field `owner` or `subject` names this owner; expired ones too."""
    marks = [_mark(ANY_KIND, field, owner) for field in NAMES_OWNER]
    found = database.ask(Ask("records", (("fields", "array_contains_any", marks),), select=()))
    return [each.reference for each in found]


def _fields(kind: str, key: str, value: Mapping[str, Any], expires_at: datetime) -> Fields:
    texts = [(field, text) for field, text in value.items() if isinstance(text, str)]
    marks = [_mark(kind, field, text) for field, text in texts]
    return {
        "key": key,
        "value": _canonical(value),
        "fields": [*marks, *(_mark(ANY_KIND, field, text) for field, text in texts if field in NAMES_OWNER)],
        "expires_at": expires_at,
        "stamp": secrets.token_urlsafe(12),
    }


def _mark(kind: str, field: str, text: str) -> str:
    return hashlib.sha256(json.dumps([kind, field, text]).encode()).hexdigest()


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
