"""FLOPs of operators by their shapes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.operator_flops import attention_flops, matmul_flops

SIZES = st.integers(1, 1 << 14)


@given(SIZES, SIZES, SIZES, SIZES)
def test_a_product_costs_two_operations_per_pair(batch: int, rows: int, inner: int, columns: int) -> None:
    left, right, bias = [rows, inner], [inner, columns], [columns]
    wanted = 2 * rows * inner * columns
    assert matmul_flops("aten::mm", [left, right]) == wanted
    assert matmul_flops("aten::addmm", [bias, left, right, [], []]) == wanted
    assert matmul_flops("aten::bmm", [[batch, *left], [batch, *right]]) == batch * wanted
    assert matmul_flops("aten::baddbmm", [[batch, rows, columns], [batch, *left], [batch, *right]]) == batch * wanted


@given(SIZES, SIZES, SIZES, SIZES)
def test_attention_costs_two_products_and_five_backwards(heads: int, queries: int, keys: int, width: int) -> None:
    shapes = [[2, heads, queries, width], [2, heads, keys, width], [2, heads, keys, width]]
    name = "aten::_scaled_dot_product_flash_attention"
    forward = attention_flops(name, shapes)
    assert forward == 4 * 2 * heads * queries * keys * width
    assert attention_flops(f"{name}_backward", [shapes[0], *shapes]) == forward * 5 // 2


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::matmul", [[2, 3], [3, 4]]),
        ("aten::mm", []),
        ("aten::mm", [[2, 3], [4, 5]]),
        ("aten::mm", [[2, 3], [3]]),
        ("aten::mm", [[2, "3"], [3, 4]]),
        ("aten::mm", [[2, -3], [-3, 4]]),
        ("aten::mm", [[2, True], [1, 4]]),
        ("aten::mm", [None, {}]),
        ("aten::bmm", [[2] * 4, [2] * 4]),
    ],
)
def test_no_figure_without_a_known_operator_and_its_shapes(name: str, shapes: list[Any]) -> None:
    assert matmul_flops(name, shapes) is None
    assert attention_flops("aten::_scaled_dot_product_flash_attention", shapes) is None
