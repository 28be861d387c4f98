"""What the server does by itself while it serves: late embeddings, and the end of what has to go."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.concurrency import run_in_threadpool

from store.errors import StoreError

log = logging.getLogger(__name__)

EMBED_SECONDS = 30
SWEEP_SECONDS = 3600
EMBED_BATCH = 64


async def embed_what_is_owed(is_current: Callable[[], bool], index_pending: Callable[[int], int]) -> None:
    """Embeds what was saved while the embedder was away, or by another model, until cancelled.

    Not while `is_current` says that the installation has another model than this process: those who run with
    that one do it.
    """
    while True:
        embedded = 0
        try:
            if await run_in_threadpool(is_current):
                embedded = await run_in_threadpool(index_pending, EMBED_BATCH)
        except StoreError as error:
            log.warning("embedding.still_owed", extra={"code": error.code})
        await asyncio.sleep(0 if embedded else EMBED_SECONDS)


async def sweep_what_has_expired(sweep: Callable[[], int]) -> None:
    """Deletes registrations nobody used, codes, sessions, and what a crash has left; until cancelled."""
    while True:
        try:
            if swept := await run_in_threadpool(sweep):
                log.info("records.swept", extra={"records": swept})
        except StoreError as error:
            log.warning("records.not_swept", extra={"code": error.code})
        await asyncio.sleep(SWEEP_SECONDS)


async def erase_what_was_closed(resume: Callable[[], int]) -> None:
    """Goes on deleting accounts where a crash or a restored database has left them, until cancelled."""
    while True:
        try:
            await run_in_threadpool(resume)
        except StoreError as error:
            log.warning("account.not_yet_deleted", extra={"code": error.code})
        await asyncio.sleep(SWEEP_SECONDS)


def lifespan(
    first: Sequence[Callable[[], object]],
    sessions: Callable[[], AbstractAsyncContextManager[None]],
    background: Callable[[], Sequence[Coroutine[None, None, None]]],
    last: Sequence[Callable[[], None]],
) -> Callable[[object], AbstractAsyncContextManager[None]]:
    """What surrounds the serving of requests.

    Args:
        first: what is done before anything is served, in this order.
        sessions: entered around everything.
        background: what runs beside requests until they end, and is then cancelled.
        last: what is done afterwards, in this order.
    """

    @asynccontextmanager
    async def serving(app: object) -> AsyncIterator[None]:
        for begin in first:
            await run_in_threadpool(begin)
        async with sessions():
            running = [asyncio.create_task(each) for each in background()]
            yield
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for finish in last:
                await run_in_threadpool(finish)

    return serving
