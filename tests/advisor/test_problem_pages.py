"""Every code that a user can meet has an entry with cause, fix and retry."""

import pytest
from django.test import Client

from advisor.api.problems import _CODES
from advisor.problem_pages import problem_sections
from profiling.failures import RUN_FAILURES
from profiling.notes import RefusalCode
from profiling.workload_json import WorkloadCode


@pytest.fixture(scope="module")
def codes() -> list[str]:
    return [str(problem.code) for section in problem_sections() for problem in section.problems]


@pytest.mark.parametrize("wanted", [*RefusalCode, *WorkloadCode, *RUN_FAILURES, *_CODES.values()])
def test_code_is_explained_once(codes: list[str], wanted: str) -> None:
    assert codes.count(str(wanted)) == 1


def test_page_has_an_anchor_for_each_code(codes: list[str], browser: Client) -> None:
    html = browser.get("/docs/problems/").content.decode()
    assert [code for code in codes if f'id="{code}"' not in html] == []
