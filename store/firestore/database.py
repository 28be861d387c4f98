"""The one Firestore database: its client, and every query that is asked of it."""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import firestore
from google.cloud.firestore_v1.base_document import DocumentSnapshot
from google.cloud.firestore_v1.base_query import BaseQuery, FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.document import DocumentReference
from google.cloud.firestore_v1.vector import Vector as StoredVector

from store.backend import Vector
from store.errors import StoreError
from store.firestore.calls import CALL_SECONDS, Patience
from store.firestore.shapes import Direction, Shape

Reference = DocumentReference
Fields = dict[str, Any]
Answer = TypeVar("Answer")
Operator = Literal["==", "in", "!=", "<", "<=", ">", ">=", "array_contains", "array_contains_any"]
Where = tuple[tuple[str, Operator, Any], ...]

COMMIT_BYTES = 3 * 1024 * 1024
"""Under the 4 MiB that the emulator takes, and far under the 10 MiB of production."""
MAX_VALUES = 30
"""What one query may compare with: the product of its lists."""
THREADS = 16
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True)
class Ask:
    """A query of one collection, or with `is_group` of all collections of that name."""

    collection: str
    where: Where = ()
    order: tuple[str, Direction] | None = None
    after: Fields | None = None
    """Values of the ordering field and of `__name__` to begin behind."""
    limit: int | None = None
    select: tuple[str, ...] | None = None
    is_group: bool = False
    at: datetime | None = None
    """The moment whose documents are asked for, of the last hour; None for now."""

    def shape(self, vector: str | None = None, total: str | None = None) -> Shape:
        """The query without its values."""
        by: dict[str, list[str]] = {}
        for field, operator, _ in self.where:
            by.setdefault(operator, []).append(field)
        contained = [*by.get("array_contains", ()), *by.get("array_contains_any", ())]
        return Shape(
            collection=self.collection,
            equal=frozenset({*by.get("==", ()), *by.get("in", ())}),
            contains=contained[0] if contained else None,
            differs=by["!="][0] if "!=" in by else None,
            order=self.order,
            vector=vector,
            total=total,
            is_group=self.is_group,
        )


class FirestoreDatabase:
    """Safe to share between threads."""

    def __init__(
        self,
        client: firestore.Client,
        now: Callable[[], datetime],
        patience: Patience = Patience(),  # noqa: B008 - frozen
        observe: Callable[[Shape], None] | None = None,
        commit_bytes: int = COMMIT_BYTES,
    ) -> None:
        """`observe` hears of every query; `commit_bytes` is the most that one commit may carry."""
        self.client = client
        self.now = now
        self.patience = patience
        self.commit_bytes = commit_bytes
        self._observe = observe
        self._pool = ThreadPoolExecutor(THREADS, "firestore")

    def document(self, collection: str, document_id: str) -> Reference:
        """A document beside the owners."""
        reference: Reference = self.client.collection(collection).document(document_id)
        return reference

    def get(self, reference: Reference) -> DocumentSnapshot[Any]:
        """The document, which may not exist."""
        return self.patience.read(lambda: reference.get(retry=None, timeout=CALL_SECONDS))

    def get_all(
        self, references: Iterable[Reference], at: datetime | None = None
    ) -> list[DocumentSnapshot[Any]]:
        """Those that exist, of one moment, in no order; as `Ask.at`."""
        wanted = [*references]
        if not wanted:
            return []
        found = self.patience.read(
            lambda: [*self.client.get_all(wanted, retry=None, timeout=CALL_SECONDS * 2, read_time=at)]
        )
        return [each for each in found if each.exists]

    def ask(self, ask: Ask, parent: Reference | None = None) -> list[DocumentSnapshot[Any]]:
        """The documents that match."""
        self._note(ask.shape())
        query = cast(Any, self._query(ask, parent))
        return self.patience.read(
            lambda: [*query.stream(retry=None, timeout=CALL_SECONDS * 2, read_time=ask.at)]
        )

    def count(self, ask: Ask, parent: Reference | None = None, total: str | None = None) -> tuple[int, int]:
        """How many documents match, and the sum of their `total`; without reading them."""
        self._note(ask.shape(total=total))
        # The client's own types call this part of it asynchronous.
        counted = cast(Any, self._query(ask, parent)).count(alias="count")
        if total is not None:
            counted = counted.sum(total, alias="total")
        (answer,) = self.patience.read(lambda: counted.get(retry=None, timeout=CALL_SECONDS * 2))
        values = {each.alias: int(each.value or 0) for each in answer}
        return values["count"], values.get("total", 0)

    def nearest(
        self, ask: Ask, parent: Reference, field: str, direction: Vector, limit: int
    ) -> list[DocumentSnapshot[Any]]:
        """The documents whose vector reaches farthest in this direction, farthest first."""
        self._note(ask.shape(vector=field))
        query = self._query(ask, parent).find_nearest(
            vector_field=field,
            query_vector=StoredVector([float(each) for each in direction]),
            limit=limit,
            distance_measure=DistanceMeasure.DOT_PRODUCT,
        )
        return self.patience.read(lambda: [*query.stream(retry=None, timeout=CALL_SECONDS * 4)])

    def at_once(self, *actions: Callable[[], Answer]) -> list[Answer]:
        """What each of them answers, asked side by side."""
        return [each.result() for each in [self._pool.submit(action) for action in actions]]

    def problem(self) -> str | None:
        """What keeps the database from serving; None when nothing does."""
        try:
            self.document("health", "ready").get(retry=None, timeout=CALL_SECONDS)
        except (exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError) as error:
            return type(error).__name__
        return None

    def check(self) -> None:
        """Nothing to do: Google keeps it whole."""

    def close(self) -> None:
        """Ends the connection."""
        self._pool.shutdown()
        cast(Any, self.client).close()

    def _note(self, shape: Shape) -> None:
        if self._observe is not None:
            self._observe(shape)

    def _query(self, ask: Ask, parent: Reference | None) -> BaseQuery:
        query: BaseQuery
        if ask.is_group:
            query = self.client.collection_group(ask.collection)
        elif parent is not None:
            query = cast(BaseQuery, parent.collection(ask.collection))
        else:
            query = cast(BaseQuery, self.client.collection(ask.collection))
        for field, operator, value in ask.where:
            query = query.where(filter=FieldFilter(field, operator, value))
        if ask.order is not None:
            query = query.order_by(ask.order[0], direction=ask.order[1])
            if ask.after is not None:
                query = query.order_by("__name__", direction=ask.order[1]).start_after(ask.after)
        if ask.limit is not None:
            query = query.limit(ask.limit)
        return query if ask.select is None else query.select([*ask.select])


def connect(project: str, name: str, now: Callable[[], datetime]) -> FirestoreDatabase:
    """The database of this name, with Google's application default credentials.

    Raises:
        StoreError: `unavailable` when there are none.
    """
    try:
        return FirestoreDatabase(firestore.Client(project=project, database=name), now)
    except GoogleAuthError as error:
        raise StoreError("unavailable", f"Firestore cannot be used: {error}") from error


@dataclass(frozen=True)
class Tenant:
    """One owner's part of the database."""

    database: FirestoreDatabase
    owner: str

    def __post_init__(self) -> None:
        if not is_id(self.owner):
            raise StoreError("not_found", "no such owner")

    @property
    def reference(self) -> Reference:
        """The owner's own document; everything else of his is below it."""
        return self.database.document("owners", self.owner)

    def document(self, collection: str, document_id: str) -> Reference:
        """One of the owner's documents."""
        reference: Reference = self.reference.collection(collection).document(document_id)
        return reference

    def ask(self, ask: Ask) -> list[DocumentSnapshot[Any]]:
        """The owner's documents that match."""
        return self.database.ask(ask, self.reference)

    def ask_in_parts(
        self, ask: Ask, field: str, operator: Operator, values: Iterable[Any]
    ) -> list[DocumentSnapshot[Any]]:
        """As `ask`, for any number of values, side by side; each document once."""
        chosen = [*dict.fromkeys(values)]
        parts = [chosen[at : at + MAX_VALUES] for at in range(0, len(chosen), MAX_VALUES)]
        found = self.database.at_once(
            *(lambda part=part: self.ask(_with(ask, field, operator, part)) for part in parts)
        )
        return [*{each.reference.path: each for part in found for each in part}.values()]


def _with(ask: Ask, field: str, operator: Operator, values: Sequence[Any]) -> Ask:
    return replace(ask, where=(*ask.where, (field, operator, [*values])))


def is_id(text: str) -> bool:
    """Whether a text can be one of our ids; anything else, a path above all, names no document."""
    is_reserved = text in (".", "..") or (text.startswith("__") and text.endswith("__"))
    return _ID.fullmatch(text) is not None and not is_reserved
