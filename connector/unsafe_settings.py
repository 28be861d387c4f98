"""Settings that are each right and together unsafe: the server does not start, and says every reason."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connector.settings import Settings

PUBLIC_MAIL_DOMAINS = frozenset(
    (
        *("163.com", "aol.com", "gmail.com", "gmx.com", "gmx.de", "googlemail.com", "hotmail.com"),
        *("icloud.com", "live.com", "mail.ru", "me.com", "msn.com", "outlook.com", "proton.me"),
        *("protonmail.com", "qq.com", "web.de", "yahoo.com", "yandex.ru"),
    )
)
"""Where anybody gets an address: as an allowed domain they would let everybody in."""


@dataclass(frozen=True)
class Problem:
    """One reason, and the settings that it depends on."""

    fields: frozenset[str]
    text: str


class UnsafeSettings(ValueError):
    """The settings cannot be served together."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(problem.text for problem in problems))
        self.problems = problems


def find_problems(settings: "Settings") -> list[Problem]:
    """Every reason not to start."""
    return [
        *_reach(settings),
        *_store(settings),
        *_provider(settings),
        *_admission(settings),
        *_models(settings),
    ]


def _reach(settings: "Settings") -> Iterator[Problem]:
    if not settings.is_https and not settings.is_on_this_machine_only:
        yield Problem(
            frozenset({"host", "public_url"}),
            "VADEMECUM: HOST listens beyond this machine, so PUBLIC_URL must be an https address",
        )
    if settings.firebase_auth_emulator_host and not settings.is_on_this_machine_only:
        # The emulator's tokens are unsigned: whoever reaches this server could be anybody (FB-04).
        yield Problem(
            frozenset({"host", "public_url", "firebase_auth_emulator_host"}),
            "FIREBASE_AUTH_EMULATOR_HOST: unsigned tokens would open this server to everybody; it may be set "
            "only while PUBLIC_URL and HOST are on this machine",
        )


def _store(settings: "Settings") -> Iterator[Problem]:
    if settings.store == "firestore" and not settings.firestore_project:
        yield Problem(
            frozenset({"store", "firestore_project"}),
            "VADEMECUM: STORE is firestore, so FIRESTORE_PROJECT must name its Google Cloud project",
        )


def _provider(settings: "Settings") -> Iterator[Problem]:
    needed: dict[str, object] = {}
    if settings.identity == "firebase":
        needed = {
            "firebase_project": settings.firebase_project,
            "firebase_api_key": settings.firebase_api_key or settings.firebase_auth_emulator_host,
            "firebase_methods": settings.firebase_methods,
        }
    if settings.identity == "oidc":
        needed = {"oidc_issuer": settings.oidc_issuer, "oidc_client_id": settings.oidc_client_id}
    for name, value in needed.items():
        if not value:
            text = f"VADEMECUM_{name.upper()}: must be set when IDENTITY is {settings.identity}"
            yield Problem(frozenset({"identity", name}), text)


def _admission(settings: "Settings") -> Iterator[Problem]:
    lists = ("allowed_emails", "allowed_uids", "allowed_domains")
    filled = [name for name in lists if getattr(settings, name)]
    for name in [*filled, *["open_sign_up"] * settings.open_sign_up]:
        if settings.identity == "passphrase":
            yield Problem(
                frozenset({"identity", name}),
                f"VADEMECUM_{name.upper()}: has no effect with passphrases; use `vademecum owner add`",
            )
    if filled and settings.open_sign_up:
        text = (
            "VADEMECUM_OPEN_SIGN_UP: lets everybody in, yet there is a list of who may; keep one of the two"
        )
        yield Problem(frozenset({*filled, "open_sign_up"}), text)
    for email in settings.allowed_emails:
        if not all(email.rpartition("@")) or email.count("@") != 1:
            text = f"VADEMECUM_ALLOWED_EMAILS: {email} is no e-mail address"
            yield Problem(frozenset({"allowed_emails"}), text)
    for domain in settings.allowed_domains:
        if "@" in domain or "." not in domain.strip("."):
            text = f"VADEMECUM_ALLOWED_DOMAINS: {domain} is no domain"
            yield Problem(frozenset({"allowed_domains"}), text)
        elif domain.lower() in PUBLIC_MAIL_DOMAINS:
            text = f"VADEMECUM_ALLOWED_DOMAINS: anybody can have an address at {domain}; name e-mails instead"
            yield Problem(frozenset({"allowed_domains"}), text)


def _models(settings: "Settings") -> Iterator[Problem]:
    uses_gemini = settings.embedder == "gemini" or settings.language_model is not None
    if uses_gemini and settings.gemini_api_key is None and settings.gemini_project is None:
        yield Problem(
            frozenset({"embedder", "language_model", "gemini_api_key", "gemini_project"}),
            "VADEMECUM: Gemini needs GEMINI_API_KEY, or GEMINI_PROJECT for Vertex AI",
        )
    names_model = settings.embedding_model or settings.embedding_dimensions
    if settings.embedder in ("local", "none") and names_model:
        yield Problem(
            frozenset({"embedder", "embedding_model", "embedding_dimensions"}),
            "VADEMECUM: EMBEDDING_MODEL and EMBEDDING_DIMENSIONS are for the embedders gemini and openai",
        )
