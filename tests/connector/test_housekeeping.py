"""What the server does by itself, with the waiting taken out."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from connector import housekeeping
from store.errors import StoreError


def run_until(done: Callable[[], bool], task: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def watch() -> None:
        running = asyncio.create_task(task())
        while not done():
            await asyncio.sleep(0)
            if running.done():
                running.result()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(watch())


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "EMBED_SECONDS", 0)
    monkeypatch.setattr(housekeeping, "SWEEP_SECONDS", 0)


def test_everything_owed_is_embedded_although_the_embedder_was_away_at_first() -> None:
    answers: list[int | StoreError] = [StoreError("unavailable", "away"), 64, 3, 0]
    asked = []

    def index_pending(limit: int) -> int:
        asked.append(limit)
        answer = answers[len(asked) - 1] if len(asked) <= len(answers) else 0
        if isinstance(answer, StoreError):
            raise answer
        return answer

    run_until(lambda: len(asked) > 4, lambda: housekeeping.embed_what_is_owed(lambda: True, index_pending))
    assert len(asked) > 4


def test_nothing_is_embedded_while_the_installation_has_another_model() -> None:
    answers = [False, False, True]
    asked: list[int] = []

    def is_current() -> bool:
        return answers.pop(0) if answers else True

    def index_pending(limit: int) -> int:
        assert not answers
        asked.append(limit)
        return 0

    run_until(lambda: bool(asked), lambda: housekeeping.embed_what_is_owed(is_current, index_pending))


def test_sweeping_goes_on_although_the_store_was_busy_at_first() -> None:
    swept = []

    def sweep() -> int:
        swept.append(1)
        if len(swept) == 1:
            raise StoreError("unavailable", "busy")
        return 2

    run_until(lambda: len(swept) > 2, lambda: housekeeping.sweep_what_has_expired(sweep))
    assert len(swept) > 2
