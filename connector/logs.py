"""Logs: one JSON object a line on standard error, each carrying the id of the request it belongs to.

A record's message is a fixed event name; everything else comes in `extra`. Tokens, codes, cookies, memory
text and queries are never passed to a logger.
"""

import contextvars
import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from connector.oauth_steps import step_of

request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)
"""Set by the outermost middleware; inherited by worker threads and by the tasks of the MCP SDK."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "color_message",
    "taskName",
}


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "event", "request_id"?, …extra, "step"?, "outcome"?, "traceback"?}`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if (current := request_id.get()) is not None:
            entry["request_id"] = current
        entry |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if (step := step_of(record.getMessage(), record.__dict__)) is not None:
            entry |= step._asdict()
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def configure(level: str, counters: Iterable[logging.Handler] = ()) -> None:
    """Sends every logger of the process through `JsonFormatter`; `counters` hear of INFO in any case."""
    written = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.setLevel(written)
    handlers = [handler, *counters]
    lowest = min(written, logging.INFO) if len(handlers) > 1 else written
    logging.basicConfig(level=lowest, handlers=handlers, force=True)
    for chatty in ("mcp", "httpx2", "httpcore2", "asyncio"):
        # The SDK tells at INFO of every stateless request that its session ended.
        logging.getLogger(chatty).setLevel(max(logging.WARNING, written))
