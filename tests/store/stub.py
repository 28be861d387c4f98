"""A service over HTTP that answers what a test tells it to, so that the real client libraries run."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


@dataclass
class Service:
    """What was asked, and what is answered next; the last answer is given again and again."""

    url: str = ""
    answers: list[Answer | Callable[[Any], Answer]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    def answer(self, body: Any) -> Answer:
        chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return chosen(body) if callable(chosen) else chosen


@contextmanager
def serving() -> Iterator[Service]:
    """The service on a port of this machine."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.requests.append((self.path, headers, body))
            status, answer = service.answer(body)
            payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            # No client keeps a connection that a test would have to close.
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
