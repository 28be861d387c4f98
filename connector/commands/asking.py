"""Asking the questions of a labelled set: of an engine in this process, or of a deployed server by MCP."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from rich.console import Console
from rich.progress import track

from connector.labelled import Labelled, Question
from store.engine import Engine
from store.errors import StoreError
from store.evaluation import Answer
from store.memory import Draft, Source

BATCH = 64
DEPTH = 10
APP = "eval"
TIMEOUT_SECONDS = 60


def locally(
    engine: Engine, owner: str, corpus: Sequence[Labelled], questions: Sequence[Question]
) -> list[Answer]:
    """Loads the corpus into the owner's space, and asks."""
    console = Console(stderr=True)
    space = engine.spaces(owner)[0].id
    labels: dict[str, str] = {}
    for start in track(
        range(0, len(corpus), BATCH), "Loading", console=console, disable=not console.is_terminal
    ):
        batch = corpus[start : start + BATCH]
        drafts = [Draft(row.content, source=Source(origin="import", external_id=row.id)) for row in batch]
        saved = engine.import_many(owner, space, APP, drafts)
        labels |= {each.memory.id: row.id for each, row in zip(saved, batch, strict=True)}
    answers = []
    for question in track(questions, "Asking", console=console, disable=not console.is_terminal):
        started = time.perf_counter()
        hits = engine.search(owner, space, question.query, limit=DEPTH)
        elapsed_ms = (time.perf_counter() - started) * 1000
        answers.append(_answer(question, [hit.memory.id for hit in hits], labels, elapsed_ms))
    return answers


def remotely(url: str, token: str, corpus: Sequence[Labelled], questions: Sequence[Question]) -> list[Answer]:
    """Asks the server at the address, as any client does; what is stored for it is forgotten afterwards.

    Args:
        url: the server's address, with or without `/mcp`.
        token: a personal access token that may read, and write when there is a corpus.
        corpus: stored first; empty when the questions name memories that are there.
        questions: what is asked.

    Raises:
        StoreError: `unavailable` when the server cannot be reached or refuses.
    """
    try:
        return asyncio.run(_remotely(url, token, corpus, questions))
    except Exception as error:
        # The SDK's errors come in groups, ours among them, and its own may quote the request.
        if (ours := _refusal(error)) is not None:
            raise ours from None
        raise StoreError(
            "unavailable", f"{url} does not answer as an MCP server that lets the token in"
        ) from error


def _refusal(error: BaseException) -> StoreError | None:
    if isinstance(error, BaseExceptionGroup):
        return next((ours for each in error.exceptions if (ours := _refusal(each)) is not None), None)
    return error if isinstance(error, StoreError) else None


async def _remotely(
    url: str, token: str, corpus: Sequence[Labelled], questions: Sequence[Question]
) -> list[Answer]:
    endpoint = url.rstrip("/").removesuffix("/mcp") + "/mcp"
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
        Client(streamable_http_client(endpoint, http_client=http)) as client,
    ):
        labels: dict[str, str] = {}
        try:
            for row in corpus:
                source = {"origin": "agent", "external_id": f"eval:{row.id}"}
                saved = await _call(client, "save_context", {"content": row.content, "source": source})
                labels[saved["item"]["id"]] = row.id
            answers = []
            for question in questions:
                started = time.perf_counter()
                arguments = {"query": question.query, "limit": DEPTH}
                found = await _call(client, "search_context", arguments)
                elapsed_ms = (time.perf_counter() - started) * 1000
                ids = [match["id"] for match in found["matches"]]
                answers.append(_answer(question, ids, labels, elapsed_ms))
            return answers
        finally:
            for memory in labels:
                await _call(client, "forget_context", {"id": memory})


async def _call(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    answer: dict[str, Any] = json.loads(getattr(content, "text", "{}"))
    if result.is_error:
        raise StoreError("unavailable", f"{tool}: {answer.get('error', {}).get('message', 'refused')}")
    return answer


def _answer(question: Question, found: Sequence[str], labels: Mapping[str, str], elapsed_ms: float) -> Answer:
    """Ids as the set knows them; another memory of the server keeps its own."""
    ranked = [labels.get(each, each) for each in found]
    return Answer(frozenset(question.relevant), ranked, elapsed_ms, question.query)
