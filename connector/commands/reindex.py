"""`vademecum reindex`: vectors of the model that the settings name, for every memory of the installation."""

import typer
from rich.console import Console
from rich.progress import Progress

from connector.commands.output import Json, open_installation, print_json
from store.errors import StoreError

BATCH = 64
"""Memories: what is lost of an interrupted run is one batch at most."""


def reindex(json: Json = False) -> None:
    """Embed anew every memory whose vectors are of another model or length than the settings name.

    Servers may run meanwhile: what is not done yet is found by its words. Interrupted, it goes on where it
    was when it is run again.
    """
    parts = open_installation()
    engine = parts.engine
    if engine.model is None:
        raise StoreError(
            "invalid_argument", "VADEMECUM_EMBEDDER is none, and search by words needs no vectors"
        )
    parts.embedding_model.choose()
    owed, embedded = engine.owed(), 0
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Embedding", total=owed)
        while done := engine.index_pending(BATCH):
            embedded += done
            # A server that runs may save, and embed too.
            progress.update(task, total=max(owed, embedded), completed=embedded)
    left = engine.owed()
    if json:
        print_json({"model": engine.model, "owed": owed, "embedded": embedded, "left": left})
    else:
        typer.echo(f"{embedded} embedded by {engine.model}")
    if left:
        raise StoreError("unavailable", f"{left} memories changed meanwhile and are still owed: run it again")
