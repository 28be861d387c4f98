"""What strangers and directories ask for: texts, an icon, and small files at fixed addresses."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.models import services_used
from connector.pages.languages import LANGUAGES
from connector.pages.public_texts import PublicTexts
from connector.settings import Settings, SettingsError
from tests.connector.pages.stand import Stand

TEXTS = ("privacy", "terms", "support")


def stand_with(path: Path, texts: PublicTexts) -> TestClient:
    return Stand(path, public_texts=texts).http


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("language", [each.code for each in LANGUAGES])
def test_each_text_is_there_for_strangers_in_each_language(stand: Stand, name: str, language: str) -> None:
    page = stand.http.get(f"/{name}?lang={language}")
    assert page.status_code == 200
    assert len(re.findall("<h1>", page.text)) == 1
    assert "{{" not in page.text and "{%" not in page.text and "](" not in page.text


def test_the_texts_name_the_server_and_who_runs_it(tmp_path: Path) -> None:
    http = stand_with(tmp_path, PublicTexts(operator="Ann *& Sons* <b>", contact="mailto:ann@example.org"))
    privacy = http.get("/privacy").text
    assert "memory.example.org" in privacy
    assert "Ann *&amp; Sons* &lt;b&gt;" in privacy
    assert '<a href="mailto:ann@example.org">ann@example.org</a>' in privacy
    assert "ann@example.org" in http.get("/support").text


@pytest.mark.parametrize("language", [each.code for each in LANGUAGES])
def test_the_privacy_text_names_whoever_is_sent_contents(tmp_path: Path, language: str) -> None:
    assert "Gemini" not in stand_with(tmp_path, PublicTexts()).get(f"/privacy?lang={language}").text
    services = services_used(Settings(state_dir=tmp_path, embedder="gemini", gemini_api_key=SecretStr("x")))
    http = stand_with(tmp_path, PublicTexts(services=services))
    assert "Google (Gemini)" in http.get(f"/privacy?lang={language}").text


def test_the_operators_own_text_takes_the_place_of_ours_and_cannot_run_anything(tmp_path: Path) -> None:
    own = "# Datenschutz\n\n<script>alert(1)</script> [x](javascript:alert(1)) [y](https://example.org)"
    http = stand_with(tmp_path, PublicTexts(own={"privacy": own, "terms": "Be nice."}, own_language="de"))
    page = http.get("/privacy?lang=zh").text
    assert '<div class="text" lang="de"' in page and "<h1>Datenschutz</h1>" in page
    assert "<script" not in page and 'href="javascript' not in page
    assert '<a href="https://example.org">y</a>' in page
    assert "<h1>使用条款</h1>" in http.get("/terms?lang=zh").text, "a text without a heading is given one"
    assert "lang=" in http.get("/support").text


def test_the_texts_come_from_files_that_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "privacy.md").write_text("# Ours\n\nNothing is kept.\n")
    environment = {
        "VADEMECUM_STATE_DIR": str(tmp_path / "state"),
        "VADEMECUM_EMBEDDER": "none",
        "VADEMECUM_PRIVACY_TEXT_FILE": str(tmp_path / "privacy.md"),
        "VADEMECUM_OPENAI_APPS_CHALLENGE": "a-token_of.theirs",
        "VADEMECUM_CONTACT": "security@example.org",
    }
    parts = Vademecum(Settings.from_env(environment))
    with TestClient(create_app(parts), base_url="http://127.0.0.1:8788") as http:
        assert "<p>Nothing is kept.</p>" in http.get("/privacy").text
        challenge = http.get("/.well-known/openai-apps-challenge")
        assert challenge.text == "a-token_of.theirs"
        assert challenge.headers["content-type"].startswith("text/plain")
        security = http.get("/.well-known/security.txt")
        assert security.headers["content-type"] == "text/plain; charset=utf-8"
        fields = dict(line.split(": ", 1) for line in security.text.splitlines())
        assert fields["Contact"] == "mailto:security@example.org"
        assert fields["Canonical"] == "http://127.0.0.1:8788/.well-known/security.txt"
        left = datetime.fromisoformat(fields["Expires"]) - datetime.now(UTC)
        assert 30 < left.days < 365
    parts.database.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("CONTACT", "not an address"),
        ("CONTACT", "http://example.org/"),
        ("CONTACT", "javascript:alert(1)"),
        ("CONTACT", "https://example.org/\nExpires: never"),
        ("CONTACT", "a@b c"),
        ("OPENAI_APPS_CHALLENGE", "two\nlines"),
        ("TEXT_LANGUAGE", 'en" onload="x'),
        ("PRIVACY_TEXT_FILE", "/nowhere/privacy.md"),
    ],
)
def test_settings_that_could_not_be_shown_are_refused(setting: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_env({f"VADEMECUM_{setting}": value})
    assert [problem.split(":")[0] for problem in refused.value.problems] == [f"VADEMECUM_{setting}"]


@pytest.mark.parametrize("name", ["openai-apps-challenge", "security.txt"])
def test_what_is_not_configured_is_not_found(stand: Stand, name: str) -> None:
    assert stand.http.get(f"/.well-known/{name}").status_code == 404


def test_search_engines_are_sent_to_the_public_pages_only(stand: Stand) -> None:
    robots = stand.http.get("/robots.txt")
    assert robots.headers["content-type"].startswith("text/plain")
    lines = robots.text.splitlines()
    assert lines[0] == "User-agent: *" and lines[-1] == "Disallow: /"
    assert {line for line in lines if line.startswith("Allow")} == {
        *("Allow: /$", "Allow: /privacy$", "Allow: /terms$", "Allow: /support$")
    }


def test_there_is_an_icon_where_browsers_look_for_one(stand: Stand) -> None:
    icon = stand.http.get("/favicon.ico")
    assert icon.headers["content-type"] == "image/x-icon" and icon.content[:4] == b"\0\0\1\0"
