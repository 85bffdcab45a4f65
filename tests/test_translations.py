"""Every sentence in three languages: complete, with the same placeholders, in the right characters, and shown."""

import re
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import Client
from django.utils.translation.template import templatize

from advisor.engine.stacks import stack_names, stacks
from advisor.stack_titles import STACK_TITLES
from tests.paths import REPOSITORY

CHINESE = {"zh-hant": "zh_Hant", "zh-hans": "zh_Hans"}
CHARACTER_SETS = {"zh-hant": "big5", "zh-hans": "gb2312"}
"""Character sets that lack the other script: an everyday character outside of them belongs to the other file."""

KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
PLACEHOLDER = re.compile(r"%\((\w+)\)([-+ #0]*\d*(?:\.\d+)?[a-z])")
HAN = re.compile(r"[\u4e00-\u9fff]")
FORM_PAGE = "/studies/new/description/"

Key = tuple[str | None, str]


@cache
def catalog(language: str) -> Catalog:
    path = REPOSITORY / "advisor" / "locale" / CHINESE[language] / "LC_MESSAGES" / "django.po"
    with path.open("rb") as lines:
        return read_po(lines, locale=CHINESE[language], abort_invalid=True)


def messages(language: str) -> list[Message]:
    return [message for message in catalog(language) if message.id]


def english(message: Message) -> list[str]:
    """The message, and its plural where it has one."""
    return [message.id] if isinstance(message.id, str) else list(message.id)


def translated(message: Message) -> list[str]:
    return [message.string] if isinstance(message.string, str) else list(message.string)


def key_of(message: Message) -> Key:
    return message.context, english(message)[0]


def translation(language: str, sentence: str) -> str:
    """The one translation of a sentence without plural; the sentence itself in English."""
    return sentence if language == "en" else catalog(language)[sentence].string


def sources() -> Iterator[tuple[Path, str]]:
    """Every file of the product that may hold sentences, as Python: templates are turned into calls of gettext."""
    for app in ("advisor", "catalog", "profiling"):
        for path in sorted((REPOSITORY / app).rglob("*")):
            if path.suffix == ".py":
                yield path, path.read_text(encoding="utf-8")
            elif "templates" in path.parts and path.suffix in (".html", ".txt"):
                calls = templatize(path.read_text(encoding="utf-8"), origin=str(path))
                yield path, "\n".join(line.strip() for line in calls.splitlines())


def in_the_code() -> dict[Key, str]:
    """Key of each sentence in the code, and the file that it was first seen in."""
    found: dict[Key, str] = {}
    for path, text in sources():
        for _line, said, _comments, context in extract("python", BytesIO(text.encode()), keywords=KEYWORDS):
            sentence = said if isinstance(said, str) else said[0]
            found.setdefault((context, sentence), str(path.relative_to(REPOSITORY)))
    return found


def test_every_offered_language_but_english_has_a_file() -> None:
    assert [code for code, _name in settings.LANGUAGES] == ["en", *CHINESE]


@pytest.mark.parametrize("language", CHINESE)
def test_the_files_hold_every_sentence_of_the_code(language: str) -> None:
    known = {key_of(message) for message in messages(language)}
    missing = {key: path for key, path in in_the_code().items() if key not in known}

    assert missing == {}


@pytest.mark.parametrize("language", CHINESE)
def test_nothing_is_empty_or_in_doubt(language: str) -> None:
    assert [message.id for message in messages(language) if message.fuzzy or not all(translated(message))] == []
    assert not catalog(language).fuzzy, "a doubtful header keeps the whole file from being compiled"


@pytest.mark.parametrize("language", CHINESE)
def test_placeholders_are_those_of_the_english_sentence(language: str) -> None:
    differing = [
        (text, said)
        for message in messages(language)
        for said in translated(message)
        for text in english(message)
        if set(PLACEHOLDER.findall(said)) != set(PLACEHOLDER.findall(text))
    ]

    assert differing == []


@pytest.mark.parametrize("language", CHINESE)
def test_percent_signs_stay_doubled_where_the_sentence_is_formatted(language: str) -> None:
    formatted = [message for message in messages(language) if "python-format" in message.flags]
    loose = [
        said
        for message in formatted
        for said in translated(message)
        if "%" in PLACEHOLDER.sub("", said).replace("%%", "")
    ]

    assert formatted
    assert loose == []


@pytest.mark.parametrize("language", CHINESE)
def test_no_character_belongs_to_the_other_script(language: str) -> None:
    foreign = {
        (character, said)
        for message in messages(language)
        for said in translated(message)
        for character in HAN.findall(said)
        if not character.encode(CHARACTER_SETS[language], errors="ignore")
    }

    assert foreign == set()


def test_titles_of_the_stacks_are_those_of_the_engine() -> None:
    assert dict(STACK_TITLES) == {name: stacks()[name].title for name in stack_names()}


@pytest.mark.django_db
@pytest.mark.parametrize("language", CHINESE)
def test_the_software_is_named_in_the_chosen_language(language: str) -> None:
    browser = Client(headers={"host": "localhost", "accept-language": language})

    page = browser.get(FORM_PAGE).content.decode()

    assert translation(language, "PyTorch FSDP without a compiler") in page
    assert "without a compiler" not in page


@pytest.mark.django_db
@pytest.mark.parametrize(("language", "asked"), [("en", "en-GB"), ("zh-hant", "zh-TW"), ("zh-hans", "zh-CN")])
def test_a_browser_gets_the_home_page_in_its_language(language: str, asked: str) -> None:
    page = Client(headers={"host": "localhost", "accept-language": asked}).get("/").content.decode()

    assert f'<html lang="{language}">' in page
    assert f"<h1>{translation(language, 'Which server should you rent for this AI job?')}</h1>" in page


@pytest.mark.django_db
@pytest.mark.parametrize("language", CHINESE)
def test_a_refused_form_says_why_in_the_chosen_language(language: str) -> None:
    browser = Client(headers={"host": "localhost", "accept-language": "en"})
    browser.post("/i18n/setlang/", {"language": language, "next": "/"})
    why = "The hidden size must be a multiple of the number of attention heads."

    page = browser.post(FORM_PAGE, {"hidden": "4096", "heads": "33"})

    assert page.status_code == 422
    assert translation(language, why) in page.content.decode()
    assert why not in page.content.decode()
