"""Owners and identities in SQLite."""

from collections.abc import Sequence

from store.errors import StoreError
from store.ids import new_id
from store.owners import Holdings, Identity, Owner, identity_key
from store.sqlite import closing
from store.sqlite.database import Database, from_micros, to_micros

FIRST_SPACE = "default"


class SQLiteOwners:
    """Fits `store.owners.Owners`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, provider: str, issuer: str, subject: str) -> Owner | None:
        """One look-up by the hashed identity."""
        row = self._database.read.execute(
            "SELECT owner FROM identities WHERE key = ?", (identity_key(provider, issuer, subject),)
        ).fetchone()
        return None if row is None else self.get(row[0])

    def create(self, provider: str, issuer: str, subject: str, label: str) -> Owner:
        """Under the write lock, so that two first sign-ins at once make one owner."""
        key = identity_key(provider, issuer, subject)
        now = to_micros(self._database.now())
        with self._database.write() as connection:
            row = connection.execute("SELECT owner FROM identities WHERE key = ?", (key,)).fetchone()
            owner = str(row[0]) if row is not None else new_id(16)
            if row is None:
                connection.execute("INSERT INTO owners (id, created_at) VALUES (?, ?)", (owner, now))
                connection.execute(
                    "INSERT INTO identities VALUES (?, ?, ?, ?, ?)", (key, owner, provider, label, now)
                )
                space = (owner, new_id(12), FIRST_SPACE, now)
                connection.execute("INSERT INTO spaces VALUES (?, ?, ?, ?)", space)
        return self.get(owner)

    def link(self, owner: str, provider: str, issuer: str, subject: str, label: str) -> None:
        """Linking the same again changes nothing."""
        key = identity_key(provider, issuer, subject)
        with self._database.write() as connection:
            is_open = "SELECT 1 FROM owners WHERE id = ? AND is_closed = 0"
            if connection.execute(is_open, (owner,)).fetchone() is None:
                raise StoreError("not_found", "no such owner")
            row = connection.execute("SELECT owner FROM identities WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0] != owner:
                raise StoreError("conflict", "this identity signs in as another owner")
            now = to_micros(self._database.now())
            connection.execute(
                "INSERT OR IGNORE INTO identities VALUES (?, ?, ?, ?, ?)", (key, owner, provider, label, now)
            )

    def get(self, owner: str) -> Owner:
        """The owner with his identities."""
        for each in self._select("AND owners.id = ?", (owner,)):
            return each
        raise StoreError("not_found", "no such owner")

    def list(self) -> Sequence[Owner]:
        """All owners, oldest first."""
        return self._select("", ())

    def holdings(self, owner: str) -> Holdings:
        """Four counts, each by its index."""
        counts = (
            self._database.read.execute(f"SELECT count(*) FROM {table} WHERE owner = ?", (owner,))  # noqa: S608
            for table in ("memories", "revisions", "spaces", "events")
        )
        return Holdings(*(count.fetchone()[0] for count in counts))

    def close(self, owner: str) -> None:
        """One transaction, however many apps are connected."""
        with self._database.write() as connection:
            closing.close(connection, owner)

    def erase(self, owner: str, limit: int) -> bool:
        """Events first: they repeat words of the memories. The last step empties the write-ahead log too."""
        with self._database.write() as connection:
            is_left = closing.erase(connection, owner, limit)
        if not is_left:
            self._database.compact()
        return is_left

    def closed(self) -> Sequence[str]:
        """Oldest first."""
        rows = self._database.read.execute("SELECT id FROM owners WHERE is_closed = 1 ORDER BY n")
        return [owner for (owner,) in rows]

    def _select(self, where: str, parameters: tuple[str, ...]) -> Sequence[Owner]:
        rows = self._database.read.execute(
            f"""SELECT owners.id, owners.created_at, provider, label, identities.created_at
                FROM owners LEFT JOIN identities ON identities.owner = owners.id
                WHERE owners.is_closed = 0 {where}
                ORDER BY owners.n, identities.created_at""",  # noqa: S608 - `where` is one of two literals
            parameters,
        )
        found: dict[str, Owner] = {}
        for owner, created_at, provider, label, linked_at in rows:
            known = found.get(owner) or Owner(owner, from_micros(created_at), ())
            if provider is not None:
                identity = Identity(provider, label, from_micros(linked_at))
                known = Owner(known.id, known.created_at, (*known.identities, identity))
            found[owner] = known
        return [*found.values()]
