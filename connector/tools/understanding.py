"""The tools that put memories together: for a task, around a name, as a graph."""

from typing import Annotated

from pydantic import Field, StringConstraints

from connector.tools.dates import rfc3339
from connector.tools.shapes import answer_schema
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import answers, context_packs, graph
from store.context_packs import MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS, Intent, Item
from store.engine import MAX_QUERY_CHARACTERS
from store.entities import Entity
from store.memory import Memory
from store.names import folded
from store.sentences import sentences
from store.summary import cut

LABEL_CHARACTERS = 120
MAX_ASKED = MAX_QUERY_CHARACTERS

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class GetContext(Arguments):
    """Arguments of `get_context`."""

    task: Annotated[str, Field(max_length=MAX_ASKED, description="What is to be done, in any words")]
    intent: Intent
    budget_tokens: Annotated[int, Field(ge=MIN_BUDGET_TOKENS, le=MAX_BUDGET_TOKENS)] = 2000


def _get_context(call: Call, arguments: GetContext) -> JsonObject:
    may_know = "memory:export" in call.principal.scopes
    without_person = None if may_know else "needs the permission memory:export"
    pack = context_packs.compose(
        call.engine, call.view, arguments.task, arguments.intent, arguments.budget_tokens, without_person
    )
    return {
        "sections": [
            {"title": section.title, "items": [_item(item) for item in section.items]}
            for section in pack.sections
        ],
        "used_tokens": pack.used_tokens,
        "omitted": [
            {"section": omitted.section, "count": omitted.count, "reason": omitted.reason}
            for omitted in pack.omitted
        ],
    }


def _item(item: Item) -> JsonObject:
    """What came from elsewhere is marked as such."""
    origin = item.memory.source.origin
    return {"text": item.text, "id": item.memory.id} | ({"origin": origin} if origin == "external" else {})


class AskContext(Arguments):
    """Arguments of `ask_context`."""

    question: Annotated[str, Field(max_length=MAX_ASKED, description="Any question, in any language")]


def _ask_context(call: Call, arguments: AskContext) -> JsonObject:
    answer = answers.answer(call.engine, call.view, arguments.question)
    if not answer.citations:
        return {"abstained": True, "reason": answers.NOTHING_FOUND}
    return {
        "answer": answer.text,
        "citations": [{"id": each.memory.id, "quote": each.quote} for each in answer.citations],
    }


class GetEntity(Arguments):
    """Arguments of `get_entity`."""

    name: Annotated[Name | None, Field(description="Left out: the list of what is known")] = None


def _get_entity(call: Call, arguments: GetEntity) -> JsonObject:
    memories = call.engine.memories
    if arguments.name is None:
        return {"entities": [_entity(entity) for entity in graph.listed(memories, call.view)]}
    known = graph.describe(memories, call.view, arguments.name)
    return {
        "entity": _entity(known.entity),
        "memories": [_telling(memory, known.entity) for memory in known.memories],
        "neighbours": [_entity(entity) | {"shared": shared} for entity, shared in known.neighbours],
    }


def _entity(entity: Entity) -> JsonObject:
    return {"name": entity.name, "types": list(entity.types), "memories": entity.memories}


def _telling(memory: Memory, entity: Entity) -> JsonObject:
    """The sentence that has the name, else the first."""
    said = [*sentences(memory.content)]
    quote = next((sentence for sentence in said if entity.key in folded(sentence)), said[0])
    return {
        "id": memory.id,
        "quote": quote,
        "kind": memory.kind,
        "origin": memory.source.origin,
        "created_at": rfc3339(memory.created_at),
    }


class QueryGraph(Arguments):
    """Arguments of `query_graph`."""

    entity: Annotated[Name, Field(description="A name, or the id of a memory")]
    max_depth: Annotated[int, Field(ge=1, le=4, description="Edges away from it")] = 2


def _query_graph(call: Call, arguments: QueryGraph) -> JsonObject:
    found = graph.neighbourhood(call.engine.memories, call.view, arguments.entity, arguments.max_depth)
    edges = [
        {"source": edge.memory, "target": edge.target, "type": edge.kind, "weight": edge.weight}
        for edge in found.edges
    ]
    return {"nodes": [_node(node) for node in found.nodes], "edges": edges, "truncated": not found.is_whole}


def _node(node: graph.Node) -> JsonObject:
    if isinstance(node.value, Entity):
        described: JsonObject = {"type": "entity", "label": node.value.name, "types": list(node.value.types)}
    else:
        memory = node.value
        described = {
            "type": "memory",
            "label": cut(memory.content, LABEL_CHARACTERS),
            "branch_state": memory.state,
            "origin": memory.source.origin,
        }
    return {"id": node.id, "depth": node.depth} | described


_LIST: JsonObject = {"type": "array", "items": {"type": "object"}}
TOOLS = (
    Tool(
        name="get_context",
        title="Context for a task",
        description="Gathers what is stored about a task, within a budget of tokens: preferences, decisions, "
        "facts, names, procedures, open tasks. The intent sets the order. Every item has its id; what was "
        "left out is counted.",
        scope="memory:read",
        arguments=GetContext,
        output_schema=answer_schema(
            sections={"type": "array"}, used_tokens={"type": "integer"}, omitted={"type": "array"}
        ),
        run=_get_context,
        read_only=True,
    ),
    Tool(
        name="ask_context",
        title="Ask the memories",
        description="Answers a question from stored memories alone, citing the sentences that say so, or "
        "abstains when they do not.",
        scope="memory:read",
        arguments=AskContext,
        output_schema=answer_schema(
            answer_={"type": "string"},
            citations_=_LIST,
            abstained_={"type": "boolean"},
            reason_={"type": "string"},
        ),
        run=_ask_context,
        read_only=True,
        listed="full",
    ),
    Tool(
        name="get_entity",
        title="What is known of a name",
        description="Tells what is stored about a person, project, organization or topic, what is near it, "
        "and which memories say so; without a name, lists what is known. Names come from topics, tags, "
        "links, quotation marks and capitals.",
        scope="memory:read",
        arguments=GetEntity,
        output_schema=answer_schema(
            entities_=_LIST, entity_={"type": "object"}, memories_=_LIST, neighbours_=_LIST
        ),
        run=_get_entity,
        read_only=True,
        listed="full",
    ),
    Tool(
        name="query_graph",
        title="Graph around a name",
        description="Returns the memories and names around a name, and the weighted edges between them: "
        "superseded_by, derived_from, mentions, belongs_to, references, depends_on. Bounded in size; "
        "truncated says whether there is more.",
        scope="memory:read",
        arguments=QueryGraph,
        output_schema=answer_schema(nodes=_LIST, edges=_LIST, truncated={"type": "boolean"}),
        run=_query_graph,
        read_only=True,
        listed="full",
    ),
)
