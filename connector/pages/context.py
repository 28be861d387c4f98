"""What the pages are given, and what they build from it once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from jinja2 import Environment
from starlette.requests import Request

from connector.deletion import AccountDeletion
from connector.identity.admission import Admission
from connector.identity.credentials import Credentials
from connector.identity.provider import IdentityProvider
from connector.identity.setup_links import SetupLinks
from connector.pages import csrf
from connector.pages.cookies import BrowserCookie
from connector.pages.decisions import Decisions
from connector.pages.languages import LanguageCookie
from connector.pages.pending import PendingMatters
from connector.pages.public_texts import PublicTexts
from connector.pages.rendering import load_templates
from connector.pages.sessions import Sessions
from oauth.records import Records
from oauth.server import AuthorizationServer
from store.engine import Engine
from store.owners import Owners


@dataclass(frozen=True)
class PageContext:
    """One installation, as the pages see it."""

    server: AuthorizationServer
    records: Records
    owners: Owners
    engine: Engine
    provider: IdentityProvider
    deletion: AccountDeletion
    admission: Admission
    state_key: bytes = field(repr=False)
    public_url: str
    now: Callable[[], datetime]
    limit: Callable[[Request], None]
    """Counts what strangers begin; raises `PageError` for one too many."""
    public_texts: PublicTexts = field(default_factory=PublicTexts)
    templates: Mapping[str, Environment] = field(default_factory=load_templates)
    """By the code of the language."""

    @cached_property
    def cookie(self) -> BrowserCookie:
        """`Secure` and `__Host-` wherever the public URL is https."""
        return BrowserCookie(self.is_https)

    @cached_property
    def language_cookie(self) -> LanguageCookie:
        """The language that was chosen here."""
        return LanguageCookie(self.is_https)

    @property
    def is_https(self) -> bool:
        """Whether people reach the pages over TLS."""
        return self.public_url.startswith("https://")

    @cached_property
    def csrf_key(self) -> bytes:
        """The key of form tokens."""
        return csrf.subkey(self.state_key)

    @cached_property
    def sessions(self) -> Sessions:
        """Who is signed in."""
        return Sessions(self.records, self.now)

    @cached_property
    def credentials(self) -> Credentials:
        """How owners last signed in."""
        return Credentials(self.records, self.state_key, self.now)

    @cached_property
    def setup_links(self) -> SetupLinks:
        """Links that let somebody in once."""
        return SetupLinks(self.records, self.now)

    @cached_property
    def decisions(self) -> Decisions:
        """What has just been decided."""
        return Decisions(self.records, self.state_key, self.now)

    @cached_property
    def pending(self) -> PendingMatters:
        """What is not decided yet."""
        return PendingMatters(self.records, self.now)
