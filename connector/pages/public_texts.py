"""Who runs this server and what they say about it in public."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from connector.models import services_used
from connector.settings import Settings

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


def configured(settings: Settings) -> PublicTexts:
    """Who runs this server and what they say about it."""
    own: dict[TextName, str] = {
        "privacy": settings.privacy_text,
        "terms": settings.terms_text,
        "support": settings.support_text,
    }
    return PublicTexts(
        operator=settings.operator,
        contact=settings.contact,
        services=services_used(settings),
        own={name: text for name, text in own.items() if text},
        own_language=settings.text_language,
        openai_apps_challenge=settings.openai_apps_challenge,
    )
