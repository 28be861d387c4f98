"""What uvicorn leaves open on the wire: a deadline for reading a request, a bound on its head, clean values.

A stalled connection ends within 30 s, however slowly it drips; ambiguous framing is refused by
the parser (llhttp in its strict mode), which closes the connection.
"""

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

READ_SECONDS = 30
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with a deadline from a request's first byte to its last."""

    _deadline: TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A connection that never sends a request is one that stalls."""
        super().connection_made(transport)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """The timer must not outlive the connection."""
        self._stop_deadline()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._head_bytes = 0
        if self._deadline is None:
            self._start_deadline()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Part of the request line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; white space around its value is no part of it (RFC 9110 §5.5)."""
        self._count(len(name) + len(value))
        super().on_header(name, value.strip(b" \t"))
        if len(self.headers) > MAX_HEADERS:
            self._refuse()

    def on_message_complete(self) -> None:
        """The last byte of a request; from here on the server is the one who takes its time."""
        self._stop_deadline()
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
                b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()
        # Raised through the parser, which stops and reports a malformed request on a closed transport.
        raise ValueError("request head too large")

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
