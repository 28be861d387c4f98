"""Passphrases: hashed by Argon2id, bounded, renewed when the parameters change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from connector.identity.passphrase import PassphraseProvider
from connector.identity.provider import Browser, SignInRefused
from connector.identity.setup import set_passphrase
from store.errors import StoreError
from store.sqlite.database import Database
from store.sqlite.owners import SQLiteOwners
from store.sqlite.records import SQLiteRecords
from tests.oauth.stand import Clock

PASSPHRASE = "correct horse battery staple"
BROWSER = Browser("browser")
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "vademecum.db", Clock())
    yield database
    database.close()


def make(database: Database, hasher: PasswordHasher | None = CHEAP) -> PassphraseProvider:
    return PassphraseProvider(SQLiteRecords(database), SQLiteOwners(database), database.now, hasher)


def stored(provider: PassphraseProvider, owner: str) -> str:
    value = provider.records.get("passphrase", owner)
    assert value is not None
    return str(value["hash"])


def test_the_hash_is_argon2id_with_the_parameters_of_rfc_9106(database: Database) -> None:
    provider = make(database, None)
    owner = set_passphrase(provider, None, PASSPHRASE)
    assert stored(provider, owner).startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert provider.authenticate({"passphrase": PASSPHRASE}, BROWSER).provider == "passphrase"


def test_an_older_hash_is_renewed_at_the_next_sign_in(database: Database) -> None:
    owner = set_passphrase(make(database), None, PASSPHRASE)
    provider = make(database, PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    before = stored(provider, owner)
    with pytest.raises(SignInRefused):
        provider.authenticate({"passphrase": "wrong"}, BROWSER)
    assert stored(provider, owner) == before
    provider.authenticate({"passphrase": PASSPHRASE}, BROWSER)
    assert "m=16,t=2" in stored(provider, owner)
    provider.authenticate({"passphrase": PASSPHRASE}, BROWSER)


def test_there_is_no_default_passphrase(database: Database) -> None:
    provider = make(database)
    assert not provider.is_set_up()
    for passphrase in ("", "passphrase", "vademecum", "admin"):
        with pytest.raises(SignInRefused):
            provider.authenticate({"passphrase": passphrase}, BROWSER)
    with pytest.raises(SignInRefused):
        provider.authenticate({}, BROWSER)


@pytest.mark.parametrize("passphrase", ["", "x" * 11, "x" * 1025, "e\u0301" * 6])
def test_a_passphrase_has_12_to_1024_characters(database: Database, passphrase: str) -> None:
    with pytest.raises(StoreError) as refused:
        set_passphrase(make(database), None, passphrase)
    assert refused.value.code == "invalid_argument"
    assert SQLiteOwners(database).list() == []


def test_keyboards_may_spell_the_same_passphrase_differently(database: Database) -> None:
    provider = make(database)
    set_passphrase(provider, None, "caf\u00e9 cr\u00e8me br\u00fbl\u00e9e")
    provider.authenticate({"passphrase": "cafe\u0301 cre\u0300me bru\u0302le\u0301e"}, BROWSER)


def test_setting_it_again_replaces_it_for_the_same_owner(database: Database) -> None:
    provider = make(database)
    owner = set_passphrase(provider, None, PASSPHRASE)
    assert set_passphrase(provider, None, "another long passphrase") == owner
    assert set_passphrase(provider, owner, "a third long passphrase") == owner
    with pytest.raises(SignInRefused):
        provider.authenticate({"passphrase": PASSPHRASE}, BROWSER)
    provider.authenticate({"passphrase": "a third long passphrase"}, BROWSER)


def test_an_owner_of_another_provider_gets_an_identity_of_their_own(database: Database) -> None:
    provider = make(database)
    first = set_passphrase(provider, None, PASSPHRASE)
    second = provider.owners.create("firebase", "https://issuer.example", "uid", "s…@example.org").id
    set_passphrase(provider, second, "another long passphrase")
    for account, passphrase, owner in (
        ("Owner", PASSPHRASE, first),
        ("s…@example.org", "another long passphrase", second),
    ):
        identity = provider.authenticate({"account": account, "passphrase": passphrase}, BROWSER)
        found = provider.owners.find(identity.provider, identity.issuer, identity.subject)
        assert found is not None and found.id == owner
    with pytest.raises(StoreError):
        set_passphrase(provider, "nobody", PASSPHRASE)
