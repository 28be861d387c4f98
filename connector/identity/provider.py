"""What the sign-in page needs of an identity provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol


@dataclass(frozen=True)
class Identity:
    """A person as a provider names them; (provider, issuer, subject) is what an owner is found by."""

    provider: str
    issuer: str
    subject: str
    label: str
    """How the account is shown to its owner; never used to find anything."""


@dataclass(frozen=True)
class Browser:
    """The browser that signs in: a digest of its cookie, and who signed in with it before, if anybody."""

    key: str
    known_owner: str | None = None


class SignInRefused(Exception):
    """The credential was wrong. The page says so without telling what exactly was wrong."""


class SignInDelayed(Exception):
    """Too many failures: nothing was checked; try again after `retry_after`."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__()
        self.retry_after = retry_after


class IdentityProvider(Protocol):
    """Turns what its part of the sign-in form sent into an identity. Synchronous, for a worker thread."""

    name: str
    form_template: str
    """The fields of its sign-in form, included by the sign-in page."""

    def form_fields(self) -> Mapping[str, object]:
        """What `form_template` shows."""

    def is_set_up(self) -> bool:
        """Whether anybody could sign in at all."""

    def authenticate(self, form: Mapping[str, str], browser: Browser) -> Identity:
        """The person who filled in the form.

        Raises:
            SignInRefused: wrong credential.
            SignInDelayed: too many wrong ones of late.
        """
