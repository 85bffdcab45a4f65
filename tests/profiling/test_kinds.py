"""Every kind of file that a reader names can be translated."""

import ast

from profiling.formats import detect
from profiling.kinds import KINDS
from tests.paths import REPOSITORY


def named_in_code() -> set[str]:
    """Values of ``"kind"`` that the readers give as a plain text."""
    found = set()
    for path in (REPOSITORY / "profiling" / "formats").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {v.value for k, v in pairs if isinstance(k, ast.Constant) and k.value == "kind" if literal(v)}
    return found


def literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_kind_is_marked_for_translation() -> None:
    in_tables = {kind for _, kind in detect._MAGIC}

    assert in_tables | named_in_code() == set(KINDS)
