"""The commands that users copy: on the page and in the documentation, the same."""

from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from advisor.recipes import RECIPES, Recipe

DOCS = Path(__file__).resolve().parents[2] / "docs" / "capture.md"
TOOLS = {"pytorch", "nsys", "ncu", "jax", "rocprofv3", "nccl", "deepspeed", "dcgmi", "nvidia-smi"}


def test_each_tool_has_one() -> None:
    assert {recipe.key for recipe in RECIPES} == TOOLS


@pytest.mark.django_db
def test_upload_page_shows_them_all(client: Client) -> None:
    page = unescape(client.get(reverse("new-capture")).content.decode())
    assert [recipe.key for recipe in RECIPES if recipe.commands not in page] == []


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.key)
def test_documentation_has_the_same_commands(recipe: Recipe) -> None:
    assert recipe.commands in DOCS.read_text(encoding="utf-8")
