"""Every kind of file that a reader names can be translated."""

import ast
from collections.abc import Iterator

from profiling.formats import detect
from profiling.kinds import KINDS
from tests.paths import REPOSITORY


def _nodes() -> Iterator[ast.AST]:
    for path in (REPOSITORY / "profiling" / "formats").glob("*.py"):
        yield from ast.walk(ast.parse(path.read_text()))


def _named() -> set[str]:
    """Values of ``"kind"`` that the readers give as plain text, or as a constant of theirs."""
    found = {kind for _, kind in detect._MAGIC}
    for node in _nodes():
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            found |= {value.value for key, value in pairs if _is(key, "kind") and _is(value)}
        if isinstance(node, ast.Assign) and _is(node.value):
            found |= {node.value.value for name in node.targets if isinstance(name, ast.Name) and name.id == "KIND"}
    return found


def _is(node: ast.expr | None, text: str | None = None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and text in (None, node.value)


def test_every_kind_is_marked_for_translation() -> None:
    assert _named() <= set(KINDS)


def test_every_kind_that_is_marked_is_named_by_a_reader() -> None:
    texts = {node.value for node in _nodes() if isinstance(node, ast.Constant)}
    assert set(KINDS) <= texts
