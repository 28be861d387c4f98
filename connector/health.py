"""What a supervisor or a load balancer asks."""

from importlib.metadata import version

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from connector.stores import OpenDatabase


def routes(database: OpenDatabase) -> list[Route]:
    """Liveness: the process answers. Readiness: the database does too, and the embedder is loaded."""

    async def live(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def ready(request: Request) -> JSONResponse:
        problem = await run_in_threadpool(database.problem)
        body = {"status": "ok" if problem is None else "unavailable", "version": version("vademecum")}
        return JSONResponse(body, 200 if problem is None else 503, {"Cache-Control": "no-store"})

    return [Route("/health/live", live), Route("/health/ready", ready), Route("/health", ready)]
