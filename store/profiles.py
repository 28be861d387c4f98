"""What an owner allows an app, beyond the permissions of its login; kept on (owner, app)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol

Surface = Literal["default", "full"]


@dataclass(frozen=True)
class AppProfile:
    """None means no limit beyond the permissions."""

    tools: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    """States of memories that the app may see."""
    spaces: tuple[str, ...] | None = None
    """Ids."""
    origins: tuple[str, ...] | None = None
    """Origins of memories that the app may see."""
    surface: Surface = "default"
    """`full` lists every tool that the permissions allow."""
    episodes: bool = False
    """Whether the app may keep and read turns of conversations."""

    def to_value(self) -> dict[str, Any]:
        """As JSON; what is at its default is left out."""
        default = AppProfile()
        return {name: value for name, value in asdict(self).items() if value != getattr(default, name)}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> "AppProfile":
        """The inverse; members that this version does not know are left out."""
        known: dict[str, Any] = {
            field.name: value[field.name] for field in fields(cls) if field.name in value
        }
        for name, each in known.items():
            known[name] = tuple(each) if isinstance(each, list) else each
        return cls(**known)


class Profiles(Protocol):
    """The profiles of every owner's apps."""

    def get(self, owner: str, app: str) -> AppProfile:
        """The app's profile; one without limits when none was stored."""

    def put(self, owner: str, app: str, profile: AppProfile) -> None:
        """Keeps it, in place of the one before.

        Raises:
            StoreError: `not_found` for an unknown owner.
        """
