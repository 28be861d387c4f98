"""What a tool is: its name and hints for the host, its arguments, and the function that answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from connector.access import Principal
from store import lifecycle
from store.engine import EVERYTHING_ACTIVE, Engine
from store.errors import StoreError
from store.memory import Filters, Hit, Memory, Space, Status, View
from store.owners import Owners

JsonObject = dict[str, Any]


class Arguments(BaseModel):
    """A tool's arguments; an unknown one is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class Call:
    """One call of a tool: who calls, and what it may work with."""

    principal: Principal
    engine: Engine
    owners: Owners
    public_url: str
    capabilities: tuple[tuple[str, str, bool], ...] = ()
    """Every tool's name and scope, and whether this app may call it."""

    @property
    def owner(self) -> str:
        """The verified owner; no argument can name another."""
        return self.principal.owner

    @cached_property
    def space(self) -> Space:
        """The space chosen for this owner and app, within what the grant allows."""
        return self.engine.space_of(self.owner, self.principal.app, self.principal.spaces)

    @cached_property
    def spaces(self) -> tuple[Space, ...]:
        """Every space that the grant allows, oldest first."""
        allowed = self.principal.spaces
        return tuple(
            space for space in self.engine.spaces(self.owner) if allowed is None or space.id in allowed
        )

    @property
    def view(self) -> View:
        """What this connection may see of the active space."""
        return self._view(self.space)

    @property
    def view_of_spaces(self) -> View:
        """What it may see of all its spaces."""
        return self._view(*self.spaces)

    def _view(self, *spaces: Space) -> View:
        ids = tuple(space.id for space in spaces)
        return View(self.owner, ids, self.principal.states, self.principal.origins)

    def must_see(self, state: str) -> None:
        """Checks that the app's profile shows memories in this state.

        Raises:
            StoreError: `forbidden`.
        """
        states = self.principal.states
        if states is not None and state not in states:
            raise StoreError("forbidden", f"this connection may not see memories in the state {state}")

    def search(
        self,
        query: str,
        filters: Filters = EVERYTHING_ACTIVE,
        limit: int = 10,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> list[Hit]:
        """Searches the active space, within the states and origins that the app's profile allows.

        Raises:
            StoreError: `forbidden` for a state that it does not allow, or as `Engine.search`.
        """
        self.must_see(filters.state)
        origins = self.principal.origins
        allowed = replace(filters, within_origins=None if origins is None else tuple(sorted(origins)))
        return self.engine.search(self.owner, self.space.id, query, allowed, limit, min_score, explain)

    def find(self, memory_id: str) -> Memory:
        """One memory; one that the profile hides reads like one that does not exist.

        Raises:
            StoreError: `not_found`.
        """
        return lifecycle.get(self.engine, self.view_of_spaces, memory_id)

    def read(self, memory_id: str) -> Memory:
        """As `find`, and being read is what counts as being used."""
        memory = self.find(memory_id)
        self.engine.note_use(memory)
        return memory

    def status(self) -> Status:
        """Counts over the spaces, as far as the app's profile shows them.

        Counts are kept by state alone. An app that sees only some states or origins is told of no topic and
        of no moment; one that sees only some origins of no number either.
        """
        status = self.engine.status(self.owner, [space.id for space in self.spaces])
        states, origins = self.principal.states, self.principal.origins
        if states is None and origins is None:
            return status
        counts = {
            state: count
            for state, count in status.counts.items()
            if origins is None and (states is None or state in states)
        }
        return replace(status, counts=counts, topics=(), updated_at=None)

    @property
    def account(self) -> str:
        """How the owner signed in, masked: told so that somebody on the wrong account notices."""
        return self.owners.get(self.owner).label


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool as the catalogue lists it; `run` is synchronous and is called in a worker thread."""

    name: str
    title: str
    description: str
    scope: str
    arguments: type[A]
    output_schema: JsonObject
    run: Callable[[Call, A], JsonObject]
    read_only: bool = False
    destructive: bool = False
    listed: Literal["default", "openai", "full"] = "default"
    replaced_for_openai: bool = False
    """Left out of OpenAI's list, where `search` or `fetch` stands in its place."""
    input_schema: JsonObject = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_schema", schema(self.arguments))

    def __call__(self, call: Call, arguments: Mapping[str, Any] | None) -> JsonObject:
        """Checks the arguments and runs the tool.

        Raises:
            StoreError: `invalid_argument` naming every argument that is wrong, or what the engine refuses.
        """
        try:
            parsed = self.arguments.model_validate(dict(arguments or {}))
        except ValidationError as error:
            raise StoreError("invalid_argument", describe(error)) from None
        return self.run(call, parsed)


def describe(error: ValidationError) -> str:
    """Pydantic's findings in the words of the tool: argument and reason, no library link, no echoed value."""
    findings = []
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        name = ".".join(str(part) for part in detail["loc"]) or "arguments"
        if detail["type"] == "extra_forbidden":
            findings.append(f"unknown argument {name[:100]}")
        else:
            findings.append(f"{name}: {detail['msg'].removeprefix('Value error, ')}")
    return "; ".join(findings[:10])


class _Compact(GenerateJsonSchema):
    """Leaves out what only fills a host's context: titles that repeat names, and null as a value.

    That an argument may be absent is said by `required` already.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        default = schema.get("default")
        if default in (None, ()) or isinstance(default, BaseModel):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def schema(model: type[BaseModel]) -> JsonObject:
    """The JSON schema of the arguments, self-contained: several clients do not follow `$ref`."""
    document = model.model_json_schema(schema_generator=_Compact)
    definitions: JsonObject = document.pop("$defs", {})
    for name, argument in document.get("properties", {}).items():
        if reference := argument.pop("$ref", None):
            document["properties"][name] = definitions[reference.rsplit("/", 1)[1]] | argument
    for described in (document, *document.get("properties", {}).values()):
        described.pop("title", None)
    document.pop("description", None)
    return document
