"""What is no id names nothing, on every backend: a path above all."""

import pytest

from store.errors import StoreError
from store.memory import Draft, Selection, View
from tests.contract.conftest import Stand


@pytest.mark.parametrize(
    "text", ["", "/", "a/b", "..", ".", "__all__", "\0", "x" * 2000, "{id}/revisions/000001"]
)
def test_a_text_that_is_no_id_is_not_found(stand: Stand, text: str) -> None:
    saved = stand.engine.save(stand.owner, stand.space, stand.app, Draft("the spare key")).memory
    asked = text.replace("{id}", saved.id)
    memories = stand.backend.memories
    for action in (
        lambda: stand.engine.fetch(stand.owner, [stand.space, asked], asked),
        lambda: stand.engine.restore(stand.owner, [stand.space, asked], asked),
        lambda: stand.engine.save(stand.owner, asked, stand.app, Draft("another")),
        lambda: memories.deprecate(stand.owner, asked, None, stand.clock()),
        lambda: memories.deprecate(stand.owner, saved.id, asked, stand.clock()),
    ):
        with pytest.raises(StoreError) as refused:
            action()
        assert refused.value.code == "not_found"
    view = View(stand.owner, (stand.space,))
    assert memories.select(view, Selection(ids=(asked, saved.id))) == [saved]
    assert not memories.delete(stand.owner, asked)
    assert memories.get_document(stand.owner, asked) is None
