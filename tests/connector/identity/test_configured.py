"""The settings, as the providers need them."""

from pathlib import Path

import pytest

from connector.identity import configured
from connector.settings import Settings, SettingsError

FIREBASE = {"identity": "firebase", "firebase_project": "demo-x", "firebase_api_key": "k"}


def test_without_the_sdk_here_the_server_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.model_validate({"state_dir": tmp_path, **FIREBASE})
    monkeypatch.setattr(configured, "own_sdk_urls", lambda: ())
    with pytest.raises(SettingsError, match="make firebase-sdk"):
        configured.firebase_sdk_urls(settings)
    from_google = Settings.model_validate({"state_dir": tmp_path, **FIREBASE, "firebase_sdk": "cdn"})
    urls = configured.firebase_sdk_urls(from_google)
    assert len(urls) == 2 and all(url.startswith("https://www.gstatic.com/firebasejs/") for url in urls)
