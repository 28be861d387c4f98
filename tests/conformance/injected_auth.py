"""The real application with an Authorization header added to every request.

The suite's server runner cannot send one; the guard stays in the path. `VADEMECUM_TEST_TOKEN` brings it.
"""

import os

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from connector.app import Vademecum, create_app
from connector.settings import Settings
from connector.wire import BoundedProtocol


class InjectedAuth:
    """Adds the header to HTTP requests, lets the lifespan through."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", b"Bearer " + token.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


if __name__ == "__main__":
    token = os.environ.pop("VADEMECUM_TEST_TOKEN")
    settings = Settings.from_env()
    app = InjectedAuth(create_app(Vademecum(settings)), token)
    uvicorn.run(app, port=settings.port, http=BoundedProtocol, ws="none", log_config=None, access_log=False)
