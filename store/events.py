"""What the activity log keeps of a call."""

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
