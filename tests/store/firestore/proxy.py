"""A proxy before the emulator that fails where it is told to: on the wire, where Firestore itself would."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import grpc  # type: ignore[import-untyped]

from tests.store.firestore.meter import Meter

StatusCode = grpc.StatusCode
Failure = tuple[Any, str]
"""A status code, and what is said about it."""


@dataclass
class Proxy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Passes calls on; `before` refuses one, `after` lets it happen and loses the answer.

    Each names a method by its last part, and says with what its next calls fail, the next one last; None lets
    one pass.
    """

    target: str
    before: dict[str, list[Failure | None]] = field(default_factory=dict)
    after: dict[str, list[Failure]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    meter: Meter = field(default_factory=Meter)
    _lock: Lock = field(default_factory=Lock)

    def start(self) -> str:
        """The address to use instead."""
        self._channel = grpc.insecure_channel(self.target)
        self._server = grpc.server(ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers([self])
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return f"127.0.0.1:{port}"

    def stop(self) -> None:
        self._server.stop(None).wait()
        self._channel.close()

    def service(self, handler_call_details: Any) -> Any:
        path: str = handler_call_details.method
        method = path.rpartition("/")[2]

        def handle(request: bytes, context: Any) -> Iterator[bytes]:
            self.calls.append(method)
            if self.before.get(method):
                failure = self.before[method].pop()
                if failure is not None:
                    context.abort(*failure)
            answers = [
                *self._channel.unary_stream(path)(
                    request, metadata=[*context.invocation_metadata()], timeout=20
                )
            ]
            with self._lock:
                self.meter.take(method, request, answers)
            if self.after.get(method):
                context.abort(*self.after[method].pop())
            yield from answers

        def passing(request: bytes, context: Any) -> Iterator[bytes]:
            try:
                yield from handle(request, context)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return grpc.unary_stream_rpc_method_handler(passing)
