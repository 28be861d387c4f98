"""The one domain error of the memory engine."""

from typing import Literal

NO_SUCH_MEMORY = "there is no such memory"
"""The same for an unknown, another owner's, a forgotten and a hidden one."""

Code = Literal["invalid_argument", "not_found", "conflict", "too_large", "unavailable", "forbidden"]


class StoreError(Exception):
    """A request the engine refuses; the tool answers it to the model, which may mend its arguments.

    The message is read by a model and by people: it names what was wrong and never holds the stored text,
    another owner's data or library wording. A `not_found` never tells a foreign id from a missing one.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
