"""Ids: opaque, URL-safe and unguessable."""

import secrets


def new_id(size: int) -> str:
    """An id from `size` random bytes; a command line would take one that begins with a dash for an option."""
    while (drawn := secrets.token_urlsafe(size)).startswith("-"):
        pass
    return drawn
