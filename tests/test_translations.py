"""Every word of the pages exists in every language, and no translation outlives what it translates."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from jinja2 import Environment

from connector.pages.languages import ENGLISH, LANGUAGES, Language

Text: TypeAlias = str | Sequence[str] | None
"""A message: its singular and plural forms when it has several."""
TEMPLATES = Path(__file__).parents[1] / "templates"
OTHERS = [language for language in LANGUAGES if language != ENGLISH]
PAGES = sorted(TEMPLATES.rglob("*.html"))
OPTIONS = {"**.html": {"trimmed": "true", "newstyle_gettext": "true"}}
NAMES = ("Vademecum", "UTC", "Claude", "ChatGPT", "Claude Code", "Codex", "Google", "JSON")
"""What is called the same everywhere."""
SHOWN_ATTRIBUTES = ("alt", "aria-label", "placeholder", "title")


def catalog(language: Language) -> Catalog:
    with (TEMPLATES / "languages" / f"{language.code}.po").open("rb") as file:
        return read_po(file, locale=language.code)


def messages(translated: Catalog) -> Iterator[Message]:
    return (message for message in translated if message.id)


def forms(text: Text) -> tuple[str, ...]:
    return (text or "",) if text is None or isinstance(text, str) else tuple(text)


def key(text: Text) -> str:
    return forms(text)[0]


@pytest.mark.parametrize("language", OTHERS, ids=lambda language: language.code)
def test_no_message_is_missing_and_none_is_unused(language: Language) -> None:
    used = {key(text) for _, _, text, _, _ in extract_from_dir(TEMPLATES, [("**.html", "jinja2")], OPTIONS)}
    translated = {key(message.id): message for message in messages(catalog(language))}
    assert used - set(translated) == set(), "run `make messages` and translate what is new"
    assert set(translated) - used == set(), "run `make messages`, which drops what is gone"
    unfinished = [
        name for name, message in translated.items() if message.fuzzy or not all(forms(message.string))
    ]
    assert unfinished == []


@pytest.mark.parametrize("language", OTHERS, ids=lambda language: language.code)
def test_a_translation_keeps_the_places_and_the_markup_of_its_message(language: Language) -> None:
    translated = catalog(language)
    for message in messages(translated):
        expected = parts(forms(message.id)[-1])
        for text in forms(message.string):
            assert parts(text) == expected, message.id
        if message.pluralizable:
            assert len(forms(message.string)) == translated.num_plurals


def parts(text: str) -> list[str]:
    return sorted(re.findall(r"%\(\w+\)s|</?\w+[^>]*>", text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_no_words_stand_in_a_template_outside_of_its_messages(path: Path) -> None:
    said = words(path.read_text())
    assert [word for word in said if word not in NAMES] == []


def words(source: str) -> list[str]:
    """What the template shows that nobody can translate: texts, and the attributes that are read out."""
    environment = Environment(extensions=["jinja2.ext.i18n"], autoescape=True)
    shown, is_message = "", False
    for _, kind, value in environment.lex(source):
        if kind == "name" and value in ("trans", "endtrans"):
            is_message = value == "trans"
        elif kind == "data" and not is_message:
            shown += str(value)
        elif kind == "variable_begin":
            shown += " · "
    shown = re.sub(r"<!--.*?-->|<code>.*?</code>|<script.*?</script>", "", shown, flags=re.DOTALL)
    attributes = re.findall(rf'\s(?:{"|".join(SHOWN_ATTRIBUTES)})="([^"]*)"', shown)
    texts = re.sub(r"<[^>]*>", "\n", shown)
    pieces = re.split(r"[\n·]", texts) + attributes
    return [piece.strip(" ,.:;") for piece in pieces if re.search(r"[^\W\d_]{2,}", piece)]


def test_the_check_for_words_would_find_some() -> None:
    assert words('<p>{% trans %}good{% endtrans %} bad <b title="worse">{{ value }}</b></p>') == [
        "bad",
        "worse",
    ]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_every_text_exists_in_every_language_with_the_same_sections(language: Language) -> None:
    shapes = (r"^#+ ", r"^- ", r"\{\{.*?\}\}", r"\]\([^)]*\)")
    for name in ("privacy", "terms", "support"):
        ours = (TEMPLATES / "texts" / f"{name}.{language.code}.md").read_text()
        english = (TEMPLATES / "texts" / f"{name}.en.md").read_text()
        for shape in shapes:
            found = re.findall(shape, ours, re.MULTILINE)
            assert sorted(found) == sorted(re.findall(shape, english, re.MULTILINE)), (name, shape)
