"""What the activity log keeps: calls of known owners, and refusals of strangers."""

from dataclasses import dataclass
from datetime import datetime

PREVIEW_CHARACTERS = 160


@dataclass(frozen=True)
class Event:
    """One tool call, without its body."""

    at: datetime
    owner: str
    app: str
    client_name: str
    name: str
    status: str
    latency_ms: float
    memory_ids: tuple[str, ...] = ()
    query_preview: str | None = None
    request_id: str | None = None


@dataclass(frozen=True)
class Rejection:
    """One request refused before anybody was known: what was asked for, and why it was refused."""

    at: datetime
    name: str
    """The path."""
    reason: str
    """The HTTP status."""
    request_id: str | None = None
