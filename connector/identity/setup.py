"""How a passphrase comes to be: a command on the server, or a link that works once.

The link's token is random and only its digest is kept. Looking at the page spends nothing (mail scanners and
link previews look); setting the passphrase does.
"""

import hashlib
import secrets
from datetime import timedelta

from connector.identity.passphrase import ISSUER, KIND, PassphraseProvider
from connector.pages.sessions import Sessions
from oauth.records import NEVER

LINK_KIND = "setup_link"
LINK_LIFETIME = timedelta(hours=24)
FIRST_SUBJECT = "owner"
FIRST_LABEL = "Owner"


class SetupLinkSpent(Exception):
    """The link was used, has expired, or never was; or the server has got its first owner meanwhile."""


def issue_setup_link(provider: PassphraseProvider, owner: str | None, public_url: str) -> str:
    """A link that sets this owner's passphrase once, within 24 hours; None means the first owner."""
    token = secrets.token_urlsafe(32)
    expires_at = provider.now() + LINK_LIFETIME
    provider.records.create(LINK_KIND, _digest(token), {"owner": owner or ""}, expires_at)
    return f"{public_url}/setup/{token}"


def is_setup_link(provider: PassphraseProvider, token: str) -> bool:
    """Whether the link would still work."""
    link = provider.records.get(LINK_KIND, _digest(token))
    return link is not None and (link["owner"] != "" or not provider.is_set_up())


def redeem_setup_link(provider: PassphraseProvider, token: str, passphrase: str) -> str:
    """Sets the passphrase and returns the owner's id.

    Raises:
        StoreError: `invalid_argument`; the passphrase is not acceptable and the link still works.
        SetupLinkSpent: nothing was set.
    """
    hashed = provider.hash(passphrase)
    link = provider.records.take(LINK_KIND, _digest(token))
    if link is None:
        raise SetupLinkSpent
    if link["owner"]:
        return _replace(provider, link["owner"], hashed)
    owner = _first_owner(provider)
    value = {"owner": owner, "subject": FIRST_SUBJECT, "hash": hashed}
    # Two links for the first owner may race: whoever creates the record is the owner.
    if not provider.records.create(KIND, owner, value, NEVER):
        raise SetupLinkSpent
    return owner


def set_passphrase(provider: PassphraseProvider, owner: str | None, passphrase: str) -> str:
    """Sets the owner's passphrase and returns the owner's id; None means the first owner, made if need be.

    Raises:
        StoreError: `invalid_argument`, the passphrase is not acceptable; `not_found`, no such owner.
    """
    hashed = provider.hash(passphrase)
    return _replace(provider, owner or _first_owner(provider), hashed)


def _first_owner(provider: PassphraseProvider) -> str:
    """The same one however often it is made."""
    return provider.owners.create(provider.name, ISSUER, FIRST_SUBJECT, FIRST_LABEL).id


def _subject(provider: PassphraseProvider, owner: str) -> str:
    """What signs this owner in by passphrase; who so far signed in otherwise only, gets it now."""
    first = provider.owners.find(provider.name, ISSUER, FIRST_SUBJECT)
    if first is not None and first.id == owner:
        return FIRST_SUBJECT
    provider.owners.link(owner, provider.name, ISSUER, owner, provider.owners.get(owner).label)
    return owner


def _replace(provider: PassphraseProvider, owner: str, hashed: str) -> str:
    """Sets the hash whatever was there, and signs every browser of this owner out."""
    while True:
        old = provider.records.get(KIND, owner)
        subject = old["subject"] if old else _subject(provider, owner)
        new = {"owner": owner, "subject": subject, "hash": hashed}
        if old is None and provider.records.create(KIND, owner, new, NEVER):
            break
        if old is not None and provider.records.swap(KIND, owner, old, new, NEVER):
            break
    Sessions(provider.records, provider.now).end_all(owner)
    return owner


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
