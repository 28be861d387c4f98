"""How a passphrase comes to be: a command on the server, or a setup link."""

import secrets

from connector.identity.admission import REMOVED_KIND
from connector.identity.passphrase import ISSUER, KIND, PassphraseProvider
from connector.identity.setup_links import SetupLink, SetupLinks, SetupLinkSpent, digest
from connector.pages.sessions import Sessions
from oauth.records import NEVER

FIRST_SUBJECT = "owner"
FIRST_LABEL = "Owner"


def is_setup_link(provider: PassphraseProvider, token: str) -> bool:
    """Whether the link would still work."""
    return _is_good(provider, _links(provider).find(digest(token)))


def redeem_setup_link(provider: PassphraseProvider, token: str, passphrase: str) -> str:
    """Sets the passphrase and returns the owner's id.

    Raises:
        StoreError: `invalid_argument`; the passphrase is not acceptable and the link still works.
        SetupLinkSpent: nothing was set.
    """
    hashed = provider.hash(passphrase)
    link = _links(provider).take(digest(token))
    if link is None or not _is_good(provider, link):
        raise SetupLinkSpent
    if link.owner:
        return _replace(provider, link.owner, hashed)
    subject = secrets.token_hex(16) if link.new_owner else _first_subject(provider)
    owner = provider.owners.create(provider.name, ISSUER, subject, link.new_owner or FIRST_LABEL).id
    value = {"owner": owner, "subject": subject, "hash": hashed}
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
    return provider.owners.create(provider.name, ISSUER, _first_subject(provider), FIRST_LABEL).id


def _first_subject(provider: PassphraseProvider) -> str:
    """The same always, so that two who race for it make one owner; another only once that one was removed."""
    first = provider.owners.find(provider.name, ISSUER, FIRST_SUBJECT)
    is_removed = first is not None and _is_removed(provider, first.id)
    return secrets.token_hex(16) if is_removed else FIRST_SUBJECT


def _is_good(provider: PassphraseProvider, link: SetupLink | None) -> bool:
    if link is None:
        return False
    if link.owner:
        return not _is_removed(provider, link.owner)
    return bool(link.new_owner) or not provider.is_set_up()


def _is_removed(provider: PassphraseProvider, owner: str) -> bool:
    return provider.records.get(REMOVED_KIND, owner) is not None


def _links(provider: PassphraseProvider) -> SetupLinks:
    return SetupLinks(provider.records, provider.now)


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
