"""Who runs this server and what they say about it in public."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TextName = Literal["privacy", "terms", "support"]


@dataclass(frozen=True)
class PublicTexts:
    """Who runs this server and what they say about it."""

    operator: str = ""
    """Whoever runs it, as they want to be called."""
    contact: str = ""
    """A `mailto:` or `https:` address."""
    services: tuple[str, ...] = ()
    """To whom contents are sent so that they are found, described or answered from."""
    own: Mapping[TextName, str] = field(default_factory=dict)
    """The texts that stand in the place of ours."""
    own_language: str = "en"
    """The language of those texts (RFC 5646)."""
    openai_apps_challenge: str = ""
    """What `/.well-known/openai-apps-challenge` answers."""
