"""What the engine asks of a language model and of one that sees, where there are such."""

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


class VisionModel(Protocol):
    """Says in words what an image shows."""

    @property
    def name(self) -> str:
        """The model, as `memory_status` names it."""

    def describe(self, image: bytes, media_type: str) -> str:
        """What is to be seen and read in it; empty for nothing.

        Args:
            image: checked by `store.images.check`; not kept by the model's side of this process.
            media_type: `image/png`, `image/jpeg`, `image/webp` or `image/gif`.

        Raises:
            StoreError: `unavailable` when no answer comes in time.
        """
