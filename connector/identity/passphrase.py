"""Sign-in with a passphrase: the embedded default, which needs no other party.

A passphrase is kept as an Argon2id hash in a record `passphrase` under its owner's id. There is no default
one: an owner without such a record cannot sign in here.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from connector.identity.provider import Browser, Identity, SignInDelayed, SignInRefused
from connector.identity.slow_down import SlowDown
from oauth.records import NEVER, Records, Value
from store.errors import StoreError
from store.owners import Owner, Owners

KIND = "passphrase"
ISSUER = "local"
MIN_CHARACTERS = 12
MAX_CHARACTERS = 1024
BUSY_SECONDS = 5


@dataclass(frozen=True)
class _Account:
    owner: Owner
    record: Value


class PassphraseProvider:
    """Knows owners by their passphrases; with several owners the form asks for the account's name too."""

    name = "passphrase"
    is_renewable = False
    form_template = "providers/passphrase.html"

    def __init__(
        self,
        records: Records,
        owners: Owners,
        now: Callable[[], datetime],
        hasher: PasswordHasher | None = None,
    ) -> None:
        self.records = records
        self.owners = owners
        self.now = now
        self._hasher = hasher or PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._slow_down = SlowDown(records, now)
        # One at a time: parallel guesses would pass the counter together, and each hash takes 64 MiB.
        self._verifying = Lock()

    def is_set_up(self) -> bool:
        """Whether any owner has a passphrase."""
        return bool(self._accounts())

    def form_fields(self) -> Mapping[str, object]:
        """Whether the form must ask which account is meant."""
        return {"asks_account": len(self._accounts()) > 1}

    def authenticate(self, form: Mapping[str, str], browser: Browser) -> Identity:
        """Checks the passphrase, unless too many were wrong of late."""
        if not self._verifying.acquire(timeout=BUSY_SECONDS):
            raise SignInDelayed(timedelta(seconds=BUSY_SECONDS))
        try:
            return self._authenticate(form, browser)
        finally:
            self._verifying.release()

    def _authenticate(self, form: Mapping[str, str], browser: Browser) -> Identity:
        claimed = form.get("account", "").strip().casefold()
        account = self._find(claimed)
        is_known = account is not None and account.owner.id == browser.known_owner
        counter = account.owner.id if account else claimed
        if is_known:
            # Strangers at the door must not lock out the owner's own browser.
            counter = f"{counter}\0{browser.key}"
        if wait := self._slow_down.remaining(counter, known_browser=is_known):
            raise SignInDelayed(wait)
        if not self._verify(account, form.get("passphrase", "")) or account is None:
            self._slow_down.failed(counter)
            raise SignInRefused
        self._slow_down.succeeded(counter)
        return Identity(self.name, ISSUER, account.record["subject"], account.owner.label)

    def renew(self, identity: Identity) -> Identity:
        """A passphrase is checked at sign-in only."""
        return identity

    def _accounts(self) -> list[_Account]:
        """Owners with a passphrase; a handful at most, they share one machine."""
        found = ((owner, self.records.get(KIND, owner.id)) for owner in self.owners.list())
        return [_Account(owner, record) for owner, record in found if record is not None]

    def _find(self, claimed: str) -> _Account | None:
        accounts = self._accounts()
        if len(accounts) == 1:
            return accounts[0]
        named = [each for each in accounts if each.owner.label.casefold() == claimed]
        return named[0] if len(named) == 1 else None

    def _verify(self, account: _Account | None, passphrase: str) -> bool:
        """Takes as long for an unknown account as for a known one."""
        passphrase = _normalized(passphrase)
        if len(passphrase) > MAX_CHARACTERS:
            return False
        if account is None:
            self._hasher.hash(passphrase)
            return False
        try:
            self._hasher.verify(account.record["hash"], passphrase)
        except (VerificationError, InvalidHashError):
            return False
        if self._hasher.check_needs_rehash(account.record["hash"]):
            new = account.record | {"hash": self._hasher.hash(passphrase)}
            self.records.swap(KIND, account.owner.id, account.record, new, NEVER)
        return True

    def hash(self, passphrase: str) -> str:
        """The Argon2id hash of an acceptable passphrase.

        Raises:
            StoreError: `invalid_argument`, too short or too long.
        """
        passphrase = _normalized(passphrase)
        if len("".join(passphrase.split())) < MIN_CHARACTERS:
            raise StoreError(
                "invalid_argument", f"a passphrase has {MIN_CHARACTERS} characters or more, spaces left out"
            )
        if len(passphrase) > MAX_CHARACTERS:
            raise StoreError("invalid_argument", f"a passphrase has {MAX_CHARACTERS} characters at most")
        return self._hasher.hash(passphrase)


def _normalized(passphrase: str) -> str:
    """One spelling for what keyboards write in several (NIST SP 800-63B §3.1.1.2)."""
    return unicodedata.normalize("NFKC", passphrase)
