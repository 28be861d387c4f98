"""What a Firestore project has of the indexes and expiries that the queries need, asked of its admin API.

Exemptions from indexing are not looked at: without them it works, and costs more.
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from google.api_core import exceptions
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_admin_v1 import Field, FirestoreAdminClient, Index
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminRestTransport

from store.errors import StoreError
from store.firestore.shapes import ACROSS_OWNERS, EXPIRING, shapes

SECONDS = 20.0
HOST = "firestore.googleapis.com"
_FIELDS = "indexConfig.usesAncestorConfig:false OR ttlConfig:*"
"""All fields that are treated in a way of their own; the service lists no others."""
Key = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Lack:
    """One thing that a project lacks; `command` makes it, unless it is being made already."""

    kind: Literal["index", "expiry"]
    name: str
    is_building: bool
    command: str


class Deployed:
    """One database, looked at."""

    def __init__(
        self, project: str, database: str, credentials: Credentials | None = None, host: str = HOST
    ) -> None:
        """`credentials` None takes Google's application default; `host` may be a URL.

        Raises:
            StoreError: `unavailable` when there are no credentials.
        """
        self._project, self._database = project, database
        self._parent = f"projects/{project}/databases/{database}/collectionGroups/-"
        try:
            transport = FirestoreAdminRestTransport(host=host, credentials=credentials)
        except GoogleAuthError as error:
            raise StoreError("unavailable", f"the admin API cannot be used: {error}") from error
        self._client = FirestoreAdminClient(transport=transport)

    def lacks(self, dimensions: Iterable[int]) -> list[Lack]:
        """What the queries need, with vectors of these lengths, and is not there or not ready.

        Raises:
            StoreError: `unavailable`, saying why the project cannot be looked at.
        """
        try:
            indexes = {_key(each): each for each in self._indexes()}
            fields = {tuple(each.name.split("/")[-3::2]): each for each in self._fields()}
        except (exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError) as error:
            said = error.message if isinstance(error, exceptions.GoogleAPICallError) else str(error)
            raise StoreError(
                "unavailable", f"the admin API answers {type(error).__name__}: {said}"
            ) from error
        return [*self._of_indexes(indexes, dimensions), *self._of_fields(fields)]

    def _indexes(self) -> Iterator[Index]:
        yield from self._client.list_indexes(request={"parent": self._parent}, timeout=SECONDS, retry=None)

    def _fields(self) -> Iterator[Field]:
        request = {"parent": self._parent, "filter": _FIELDS}
        yield from self._client.list_fields(request=request, timeout=SECONDS, retry=None)

    def _of_indexes(self, there: dict[Key, Index], dimensions: Iterable[int]) -> Iterator[Lack]:
        for needed in (each.index() for each in shapes(dimensions)):
            if needed is None:
                continue
            found = there.get(_needed_key(needed))
            if found is None or found.state != Index.State.READY:
                is_building = found is not None and found.state == Index.State.CREATING
                yield Lack("index", _name(needed), is_building, self._index_command(needed))

    def _of_fields(self, there: dict[tuple[str, ...], Field]) -> Iterator[Lack]:
        for collection in EXPIRING:
            state = _ttl(there.get((collection, "expires_at")))
            if state != Field.TtlConfig.State.ACTIVE:
                is_building = state == Field.TtlConfig.State.CREATING
                yield Lack(
                    "expiry", f"{collection}.expires_at", is_building, self._expiry_command(collection)
                )
        collection, path = ACROSS_OWNERS
        states = _group_states(there.get(ACROSS_OWNERS))
        if Index.State.READY not in states:
            name = f"{collection} across owners: {path}"
            is_building = Index.State.CREATING in states
            yield Lack("index", name, is_building, self._group_command(collection, path))

    def _index_command(self, needed: dict[str, Any]) -> str:
        scope = needed["queryScope"].lower().replace("_", "-")
        configured = [f"--field-config={_field_config(each)}" for each in needed["fields"]]
        return self._gcloud(
            "firestore indexes composite create",
            f"--collection-group={needed['collectionGroup']}",
            f"--query-scope={scope}",
            *configured,
        )

    def _expiry_command(self, collection: str) -> str:
        group = f"--collection-group={collection}"
        return self._gcloud("firestore fields ttls update expires_at", group, "--enable-ttl")

    def _group_command(self, collection: str, path: str) -> str:
        """gcloud cannot say the scope of a single field's index, so this is the call it would make."""
        index = {"queryScope": "COLLECTION_GROUP", "fields": [{"fieldPath": path, "order": "ASCENDING"}]}
        body = json.dumps({"indexConfig": {"indexes": [index]}})
        parent = self._parent.replace("/-", f"/{collection}")
        url = f"https://{HOST}/v1/{parent}/fields/{path}?updateMask=indexConfig"
        sent = shlex.join(["-H", "Content-Type: application/json", "-d", body, url])
        return f'curl -X PATCH -H "Authorization: Bearer $(gcloud auth print-access-token)" {sent}'

    def _gcloud(self, command: str, *arguments: str) -> str:
        where = (f"--database={self._database}", f"--project={self._project}")
        return f"gcloud {command} {shlex.join([*arguments, *where])}"


def _key(index: Index) -> Key:
    """The service adds the document's name, which every index ends with."""
    fields = tuple((each.field_path, _how(each)) for each in index.fields if each.field_path != "__name__")
    return index.name.split("/")[-3], index.query_scope.name, fields


def _how(field: Index.IndexField) -> str:
    if "vector_config" in field:
        return f"vector {field.vector_config.dimension}"
    return "contains" if "array_config" in field else field.order.name


def _needed_key(needed: dict[str, Any]) -> Key:
    def how(field: dict[str, Any]) -> str:
        if "vectorConfig" in field:
            return f"vector {field['vectorConfig']['dimension']}"
        return "contains" if "arrayConfig" in field else str(field["order"])

    fields = tuple((each["fieldPath"], how(each)) for each in needed["fields"])
    return needed["collectionGroup"], needed["queryScope"], fields


def _field_config(field: dict[str, Any]) -> str:
    path = f"field-path={field['fieldPath']}"
    if "vectorConfig" in field:
        return f'{path},vector-config={{"dimension":"{field["vectorConfig"]["dimension"]}","flat":"{{}}"}}'
    return (
        f"array-config=contains,{path}"
        if "arrayConfig" in field
        else f"order={field['order'].lower()},{path}"
    )


def _name(needed: dict[str, Any]) -> str:
    return f"{needed['collectionGroup']}: {', '.join(each['fieldPath'] for each in needed['fields'])}"


def _ttl(field: Field | None) -> Field.TtlConfig.State | None:
    return field.ttl_config.state if field is not None and "ttl_config" in field else None


def _group_states(field: Field | None) -> list[Index.State]:
    indexes = [] if field is None else field.index_config.indexes
    return [each.state for each in indexes if each.query_scope == Index.QueryScope.COLLECTION_GROUP]
