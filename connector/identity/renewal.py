"""Before a client's refresh token rotates, the provider is asked whether its owner's account still lives.

At most once in ten minutes per owner, by one process at a time: some providers rotate their refresh tokens
too, and two who use the same one would look like thieves. Down is not gone: an outage answers 503 and loses
nothing, and only the provider's own word ends anything (OAUTH "Token").
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from connector.identity.admission import Admission, NotAdmitted
from connector.identity.credentials import Credential, Credentials
from connector.identity.provider import AccountEnded, IdentityProvider, ProviderUnavailable
from oauth.errors import InvalidGrant, TemporarilyUnavailable
from oauth.records import Records

log = logging.getLogger(__name__)

LOCK_KIND = "identity_renewal"
RENEWED_AFTER = timedelta(minutes=10)
LOCK_LIFETIME = timedelta(seconds=60)
"""Longer than a renewal may take: whoever held it then has died."""
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Renewal:
    """What `AuthorizationServer.renew_identity` asks."""

    provider: IdentityProvider
    credentials: Credentials
    admission: Admission
    records: Records
    now: Callable[[], datetime]
    end_logins: Callable[[str], None]
    """For an owner whose account has ended."""
    end_access: Callable[[str], None]
    """For an owner who may no longer come in at all."""
    sleep: Callable[[float], None] = time.sleep

    def renew(self, owner: str) -> None:
        """Whether this owner may still come in.

        Raises:
            InvalidGrant: removed, off the list, or the account is disabled, deleted or signed out.
            TemporarilyUnavailable: the provider does not answer; nothing has changed.
        """
        if self.admission.is_removed(owner):
            raise InvalidGrant("this owner was removed")
        credential = self._find(owner)
        if credential is None or self._is_settled(credential):
            return
        if not self._wait_for_lock(owner):
            raise TemporarilyUnavailable("the identity provider is being asked already", 2)
        try:
            # Whoever held the lock before has answered the question, perhaps.
            credential = self._find(owner)
            if credential is not None and not self._is_settled(credential):
                self._ask(credential)
        finally:
            self.records.delete(LOCK_KIND, owner)

    def end_strangers(self) -> None:
        """Ends what those still have who were taken off the list; asked once, when the server starts."""
        if not self.admission.allow_list:
            return
        for credential in self.credentials.of_provider(self.provider.name):
            try:
                self.admission.check(credential.identity, credential.owner)
            except NotAdmitted:
                self._end(credential, self.end_access)

    def _find(self, owner: str) -> Credential | None:
        """The credential that this provider can renew; somebody who has moved here owes none to another."""
        credential = self.credentials.find(owner)
        is_ours = credential is not None and credential.identity.provider == self.provider.name
        return credential if is_ours else None

    def _is_settled(self, credential: Credential) -> bool:
        """Whether nothing needs to be asked now.

        Raises:
            InvalidGrant: the answer is known, and it is no.
        """
        if credential.has_ended:
            raise InvalidGrant("the account has ended; sign in again")
        try:
            self.admission.check(credential.identity, credential.owner)
        except NotAdmitted:
            self._end(credential, self.end_access)
            raise InvalidGrant("this account may no longer come in") from None
        return abs(self.now() - credential.checked_at) < RENEWED_AFTER

    def _ask(self, credential: Credential) -> None:
        try:
            identity = self.provider.renew(credential.identity)
            self.admission.check(identity, credential.owner)
        except ProviderUnavailable as error:
            log.warning("identity.not_renewed", extra={"owner": credential.owner})
            seconds = max(1, int(error.retry_after.total_seconds()))
            raise TemporarilyUnavailable("the identity provider does not answer", seconds) from None
        except AccountEnded:
            self._end(credential, self.end_logins)
            raise InvalidGrant("the account has ended; sign in again") from None
        except NotAdmitted:
            self._end(credential, self.end_access)
            raise InvalidGrant("this account may no longer come in") from None
        self.credentials.renewed(credential, identity)
        log.info("identity.renewed", extra={"owner": credential.owner})

    def _end(self, credential: Credential, end: Callable[[str], None]) -> None:
        """Ends first, notes it then: a crash between the two asks again."""
        log.warning("identity.ended", extra={"owner": credential.owner})
        end(credential.owner)
        self.credentials.ended(credential)

    def _wait_for_lock(self, owner: str) -> bool:
        for _ in range(int(WAIT_SECONDS / POLL_SECONDS)):
            if self.records.create(LOCK_KIND, owner, {}, self.now() + LOCK_LIFETIME):
                return True
            self.sleep(POLL_SECONDS)
        return False
