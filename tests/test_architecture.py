"""The shape of the code: what imports what, and what a process pays for starting."""

import subprocess
import sys

import pytest

from tests.paths import REPOSITORY

TOP_LEVEL = {
    *("manage.py", "advisor", "catalog", "profiling", "tests", "requirements.txt", "README.md"),
    *("requirements.in", "Makefile", "docs", "benchmarks", "pytest.ini", "ruff.toml"),
}
LONGEST_MODULE = 400


def loaded_after(statement: str) -> set[str]:
    """Top-level packages in memory after this statement, in a process of its own."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    return set(run.stdout.split())


def tracked() -> list[str]:
    run = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.splitlines()


def test_the_web_process_does_not_load_scikit_learn_or_charts() -> None:
    start = "from advisor.wsgi import application; from django.urls import reverse; reverse('home')"

    assert loaded_after(start) & {"sklearn", "scipy", "altair", "vl_convert"} == set()


@pytest.mark.parametrize("core", ["advisor.engine.advise", "profiling.formats.registry", "catalog.specs"])
def test_the_cores_load_neither_django_nor_celery(core: str) -> None:
    assert loaded_after(f"import {core}") & {"django", "celery", "redis", "rest_framework"} == set()


def test_the_top_level_stays_as_drawn() -> None:
    visible = {path.partition("/")[0] for path in tracked() if not path.startswith(".")}

    assert visible <= TOP_LEVEL


def test_no_module_holds_two_ideas() -> None:
    sizes = {path: len((REPOSITORY / path).read_text().splitlines()) for path in tracked() if path.endswith(".py")}
    long = {path: size for path, size in sizes.items() if size > LONGEST_MODULE and "/migrations/" not in path}

    assert long == {}
