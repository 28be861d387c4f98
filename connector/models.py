"""Which models the settings ask for. Each is imported only then: Google's client takes a second to load."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connector.settings import Settings, is_loopback
from store.embedders.protocol import Embedder

if TYPE_CHECKING:
    from google.genai import Client

    from store.gemini import GeminiModel

OPENAI_MODEL = "text-embedding-3-small"
OPENAI_DIMENSIONS = 1536
GEMINI_DIMENSIONS = 768
LOCAL_DIMENSIONS = 384


def embedder(settings: Settings) -> Embedder | None:
    """The embedder; None when search is by words alone."""
    match settings.embedder:
        case "local":
            from store.embedders.local import LocalEmbedder

            return LocalEmbedder(settings.state_dir)
        case "gemini":
            from store.embedders import gemini

            return gemini.GeminiEmbedder(
                _gemini(settings),
                settings.embedding_model or gemini.MODELS[0],
                settings.embedding_dimensions or GEMINI_DIMENSIONS,
            )
        case "openai":
            from store.embedders.openai import OpenAIEmbedder

            key = settings.openai_api_key
            return OpenAIEmbedder(
                settings.openai_base_url,
                None if key is None else key.get_secret_value(),
                settings.embedding_model or OPENAI_MODEL,
                settings.embedding_dimensions or OPENAI_DIMENSIONS,
            )
        case "none":
            return None


def dimensions(settings: Settings) -> int | None:
    """The length of the embedder's vectors, without loading it; None when there is none."""
    match settings.embedder:
        case "local":
            return LOCAL_DIMENSIONS
        case "gemini":
            return settings.embedding_dimensions or GEMINI_DIMENSIONS
        case "openai":
            return settings.embedding_dimensions or OPENAI_DIMENSIONS
        case "none":
            return None


def language_model(settings: Settings) -> "GeminiModel | None":
    """What describes images, merges memories and writes answers; None when nothing does."""
    if settings.language_model is None:
        return None
    from store.gemini import GeminiModel

    return GeminiModel(_gemini(settings), settings.language_model)


def services_used(settings: Settings) -> tuple[str, ...]:
    """Who beyond this machine is sent contents and searches."""
    uses_gemini = settings.embedder == "gemini" or settings.language_model is not None
    services = ["Google (Gemini)"] if uses_gemini else []
    host = urlsplit(settings.openai_base_url).hostname or ""
    if settings.embedder == "openai" and not is_loopback(host):
        services.append(host)
    return tuple(services)


def _gemini(settings: Settings) -> "Client":
    from store.gemini import client

    key = settings.gemini_api_key
    return client(
        None if key is None else key.get_secret_value(),
        settings.gemini_project,
        settings.gemini_location,
        settings.gemini_base_url,
    )
