"""What the sign-in page needs of an identity provider."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol

from oauth.records import Records


@dataclass(frozen=True)
class Identity:
    """A person as a provider names them; (provider, issuer, subject) is what an owner is found by."""

    provider: str
    issuer: str
    subject: str
    label: str
    """How the account is shown to its owner; never used to find anything."""
    verified_email: str = ""
    """The e-mail address that the provider vouches for; empty when it does not."""
    refresh_token: str | None = field(default=None, repr=False)
    """What asks the provider later whether the account still lives; None where it gives no such thing."""


@dataclass(frozen=True)
class Browser:
    """The browser that signs in: a digest of its cookie, and who signed in with it before, if anybody."""

    key: str
    known_owner: str | None = None


class SignInRefused(Exception):
    """The credential was wrong. The page says so without telling what exactly was wrong."""

    def __init__(self, alert: Literal["refused", "not_accepted"] = "refused") -> None:
        """Args: `alert` is "refused" for what a person typed, else "not_accepted"."""
        super().__init__(alert)
        self.alert = alert


class SignInDelayed(Exception):
    """Too many failures: nothing was checked; try again after `retry_after`."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__()
        self.retry_after = retry_after


class ProviderUnavailable(Exception):
    """The provider does not answer as it should. Nothing is lost; the same may do in `retry_after`."""

    def __init__(self, retry_after: timedelta = timedelta(seconds=10)) -> None:
        super().__init__()
        self.retry_after = retry_after


class AccountEnded(Exception):
    """The provider says that the account, or the sign-in that it once accepted, is no longer good."""


class IdentityProvider(Protocol):
    """Turns what its part of the sign-in form sent into an identity. Synchronous, for a worker thread."""

    name: str
    records: Records
    now: Callable[[], datetime]
    is_renewable: bool
    """Whether it can be asked later if the account still lives."""
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
            ProviderUnavailable: it could not be checked now.
        """

    def renew(self, identity: Identity) -> Identity:
        """The same person as the provider describes them now, with the refresh token to use next.

        Raises:
            AccountEnded: disabled, deleted or signed out there.
            ProviderUnavailable: nothing has changed.
        """
