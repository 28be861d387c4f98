"""What a space may be called."""

from store.characters import is_visible, well_formed
from store.errors import StoreError

MAX_NAME_CHARACTERS = 100


def check_name(name: str) -> str:
    """The name without white space around it.

    Raises:
        StoreError: `invalid_argument`.
    """
    name = well_formed(name).strip()
    if "\0" in name or not is_visible(name) or not name.isprintable() or len(name) > MAX_NAME_CHARACTERS:
        raise StoreError(
            "invalid_argument", f"a space's name is 1 to {MAX_NAME_CHARACTERS} visible characters on one line"
        )
    return name
