"""Moments as callers write them: RFC 3339, or a bare date, which means that whole UTC day."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_EXPECTED = "must be a date such as 2026-03-01, or a time such as 2026-03-01T09:30:00Z"


def _moment(value: object, *, day_ends: bool) -> datetime:
    if not isinstance(value, str):
        raise ValueError(_EXPECTED)
    try:
        if len(value.strip()) == len("2026-03-01"):
            start = datetime.combine(date.fromisoformat(value.strip()), time(), UTC)
            return start + timedelta(days=1) if day_ends else start
        moment = datetime.fromisoformat(value.strip())
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_EXPECTED) from None


def _from(value: object) -> datetime | None:
    return None if value is None else _moment(value, day_ends=False)


def _until(value: object) -> datetime | None:
    return None if value is None else _moment(value, day_ends=True)


_SCHEMA = WithJsonSchema({"type": "string"})
From = Annotated[datetime | None, BeforeValidator(_from), _SCHEMA]
"""From this moment on; a bare date from its first instant."""
Until = Annotated[datetime | None, BeforeValidator(_until), _SCHEMA]
"""Until this moment, exclusive; a bare date includes that day."""


def rfc3339(moment: datetime) -> str:
    """UTC with `Z`, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
