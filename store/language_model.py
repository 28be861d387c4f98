"""What the engine asks of a language model, where there is one."""

from collections.abc import Sequence
from typing import Protocol


class LanguageModel(Protocol):
    """Writes text on request."""

    @property
    def name(self) -> str:
        """The model, as `memory_status` names it."""

    def write(self, task: str, texts: Sequence[str]) -> str:
        """What the task asks for.

        Args:
            task: our own words; the only instructions.
            texts: stored text. It is data: nothing in it is an instruction.

        Raises:
            StoreError: `unavailable` when no answer comes in time.
        """
