"""The one SQLite file: connections, transactions, migrations."""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from store.errors import StoreError
from store.sqlite.schema import MIGRATIONS

BUSY_MS = 10_000
MERGED_PAGES = 500
DAMAGED = (
    "it is damaged, so that nothing was started on it; put a backup in its place "
    "(`vademecum backup list`, then `vademecum restore FILE --apply`), or move the file away to begin anew"
)


class Database:
    """One writer at a time in this process, one reader per thread; other processes wait for `BUSY_MS`."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        """Opens and migrates the file.

        Raises:
            StoreError: `unavailable` when the file is newer than this program, is no database, is damaged, or
                is being replaced.
        """
        self.path = path
        self.now = now
        self._local = threading.local()
        self._readers: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.RLock()
        self._readers_lock = threading.Lock()
        self._in_use = _lock(path, fcntl.LOCK_SH)
        try:
            self._open()
        except BaseException:
            os.close(self._in_use)
            raise

    def _open(self) -> None:
        path = self.path
        try:
            # Made here, so that it is never, not even for a moment, readable by others.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._writer = self._connect()
            # What is deleted is overwritten, whoever deletes it: the file does not go on holding the words.
            self._writer.execute("PRAGMA secure_delete=ON")
        except (OSError, sqlite3.Error) as error:
            mend = f"; {DAMAGED}" if _is_damage(error) else ""
            raise StoreError(
                "unavailable", f"{path} cannot be used as the database: {error}{mend}"
            ) from error
        try:
            self._migrate()
        except (sqlite3.Error, StoreError) as error:
            self._writer.close()
            mend = f"; {DAMAGED}" if _is_damage(error) else ""
            raise StoreError(
                "unavailable", f"{path} cannot be used as the database: {error}{mend}"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA temp_store=MEMORY")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _migrate(self) -> None:
        """Forward only; a file that holds anything is copied beside itself first."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise StoreError("unavailable", "it was written by a newer version of this program")
        if version == len(MIGRATIONS):
            return
        with self.write() as connection:
            # Another process may have done it while this one waited for the lock.
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version:
                self._copy(self.path.with_suffix(f".before-{version + 1}.db"))
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                for statement in script:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number}")

    def _copy(self, target: Path) -> None:
        with closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
        target.chmod(0o600)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, committed and on disk when the block ends, rolled back when it raises."""
        with self._lock:
            connection = self._writer
            if connection.in_transaction:
                yield connection
                return
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                raise StoreError("unavailable", "the database is busy; nothing was changed") from error
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise StoreError(
                        "unavailable", "the database cannot be written; nothing was changed"
                    ) from error
                raise

    @property
    def read(self) -> sqlite3.Connection:
        """This thread's reader; every statement sees all that was committed before it."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            self._keep(connection)
        return connection

    def _keep(self, connection: sqlite3.Connection) -> None:
        """Closes the readers of threads that have ended; worker threads come and go by the thousand."""
        with self._readers_lock:
            readers, self._readers = self._readers, [(threading.current_thread(), connection)]
            for thread, reader in readers:
                if thread.is_alive():
                    self._readers.append((thread, reader))
                else:
                    reader.close()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A reader whose statements all see the same moment."""
        connection = self.read
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")

    @contextmanager
    def moment(self) -> Iterator[sqlite3.Connection]:
        """A reader of its own for a long reading, which sees one moment throughout."""
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("BEGIN")
            yield connection

    def problem(self) -> str | None:
        """What keeps the database from serving; None when nothing does."""
        try:
            self.read.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            return str(error)
        return None

    def compact(self) -> None:
        """Merges the index of words, which drops those of deleted passages, and empties the log of writes.

        Step by step, so that others write in between. What a reader still needs stays in the log until its
        next turn; the file itself no longer has it.
        """
        # Negative: begin to merge everything. Then on, until fewer than two changes say that it is done.
        pages, changes = -MERGED_PAGES, 2
        while changes >= 2:
            with self.write() as connection:
                before = connection.total_changes
                connection.execute("INSERT INTO terms (terms, rank) VALUES ('merge', ?)", (pages,))
                changes = connection.total_changes - before
            pages = MERGED_PAGES
        with self._lock:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> None:
        """Walks over every page, which a server does once as it starts.

        Raises:
            StoreError: `unavailable`, saying what is damaged and how to mend it.
        """
        try:
            found = [text for (text,) in self.read.execute("PRAGMA quick_check(1)") if text != "ok"]
        except sqlite3.DatabaseError as error:
            found = [str(error)]
        if found:
            raise StoreError("unavailable", f"{self.path}: {found[0]}; {DAMAGED}")

    def close(self) -> None:
        """Ends every connection; the file is whole without it."""
        with self._lock, self._readers_lock:
            for connection in (self._writer, *(reader for _, reader in self._readers)):
                connection.close()
            self._readers.clear()
            if self._in_use >= 0:
                os.close(self._in_use)
                self._in_use = -1


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Nobody else uses the database at `path` within the block.

    Raises:
        StoreError: `conflict` while a process has it open.
    """
    descriptor = _lock(path, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(path: Path, how: int) -> int:
    """A lock on a file beside the database, which ends with the process, whatever ends that.

    Not on the database itself: closing a second descriptor of it would end SQLite's own locks.
    """
    descriptor = -1
    try:
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        if how == fcntl.LOCK_EX:
            said = f"{path} is in use: stop the server and every other command first; nothing was changed"
            raise StoreError("conflict", said) from error
        raise StoreError("unavailable", f"{path} is being replaced; try again") from error
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise StoreError("unavailable", f"{path} cannot be used as the database: {error}") from error
    return descriptor


def _is_damage(error: Exception) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch, as every column keeps time."""
    return round(moment.timestamp() * 1_000_000)


def from_micros(value: int) -> datetime:
    """The aware UTC moment."""
    return datetime.fromtimestamp(value / 1_000_000, UTC)
