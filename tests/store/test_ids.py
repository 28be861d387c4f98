"""Ids are typed on command lines too."""

import secrets

import pytest

from store.ids import new_id


def test_an_id_never_looks_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["-option", "--flag", "good-id_"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: next(drawn))
    assert new_id(16) == "good-id_"
