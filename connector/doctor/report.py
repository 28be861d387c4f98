"""A check's name, its result, and a sentence on how to mend it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Result = Literal["ok", "warning", "failed", "skipped"]
HOSTS = ("Claude", "ChatGPT", "Codex")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `hosts` are those that it keeps from connecting."""

    name: str
    result: Result
    said: str = ""
    mend: str = ""
    hosts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "name": self.name,
            "result": self.result,
            "said": self.said,
            "mend": self.mend,
            "hosts": [*self.hosts],
        }


def ok(name: str, said: str = "") -> Check:
    """Nothing is wrong."""
    return Check(name, "ok", said)


def failed(name: str, said: str, mend: str, hosts: Sequence[str] = ()) -> Check:
    """It keeps the server, or these hosts, from working."""
    return Check(name, "failed", said, mend, tuple(hosts))


def warning(name: str, said: str, mend: str) -> Check:
    """It works, but not as well or as safely as it could."""
    return Check(name, "warning", said, mend)


def skipped(name: str, said: str) -> Check:
    """It could not be looked at, because of something else that failed."""
    return Check(name, "skipped", said)


def is_healthy(checks: Iterable[Check]) -> bool:
    """Whether nothing failed."""
    return all(check.result != "failed" for check in checks)


def verdicts(checks: Sequence[Check]) -> dict[str, list[str]]:
    """For each host, the names of the checks that keep it from connecting."""
    return {
        host: [check.name for check in checks if check.result == "failed" and host in check.hosts]
        for host in HOSTS
    }
