"""App profiles in SQLite, in the row that also keeps the app's space."""

import json
import sqlite3

from store.errors import StoreError
from store.profiles import AppProfile
from store.sqlite.database import Database


class SQLiteProfiles:
    """Fits `store.profiles.Profiles`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, owner: str, app: str) -> AppProfile:
        """One look-up."""
        row = self._database.read.execute(
            "SELECT profile FROM app_profiles WHERE owner = ? AND app = ?", (owner, app)
        ).fetchone()
        return AppProfile() if row is None else AppProfile.from_value(json.loads(row[0]))

    def put(self, owner: str, app: str, profile: AppProfile) -> None:
        """The chosen space stays."""
        with self._database.write() as connection:
            try:
                connection.execute(
                    """INSERT INTO app_profiles (owner, app, profile) VALUES (?, ?, ?)
                       ON CONFLICT (owner, app) DO UPDATE SET profile = excluded.profile""",
                    (owner, app, json.dumps(profile.to_value())),
                )
            except sqlite3.IntegrityError as error:
                raise StoreError("not_found", "no such owner") from error
