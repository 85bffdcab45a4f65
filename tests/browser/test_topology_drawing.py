"""Drawings of topologies in a real browser: no text leaves the picture, nothing needs an inline style."""

from dataclasses import replace
from typing import Any

import pytest

from catalog.specs import TopologyClass
from catalog.topology_drawing import draw
from tests.browser.chromium import Complaints
from tests.catalog.test_topology_drawing import FULL, KNOWN, PARTIAL

pytestmark = pytest.mark.browser


def test_texts_stay_inside_on_a_narrow_page_without_inline_styles(chromium: Any) -> None:
    names = ("RTX PRO 6000 Blackwell Server Edition", "加速器" * 20)
    pictures = [
        draw(replace(fabric, topology=topology), **KNOWN | {"gpu_count": gpus, "accelerator_name": name})
        for topology in TopologyClass
        for fabric in (FULL, PARTIAL)
        for gpus, name in zip((8, 16), names, strict=True)
    ]
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    complaints = Complaints()
    complaints.watch(page)
    page.set_content(f"<!doctype html><meta charset=utf-8>{policy}<body>{''.join(pictures)}")
    outside = page.evaluate(
        """() => [...document.querySelectorAll('text')].filter(text => {
            const box = text.getBBox(), all = text.ownerSVGElement.viewBox.baseVal
            return box.x < 0 || box.x + box.width > all.width || box.y < 0 || box.y + box.height > all.height
        }).map(text => text.textContent)"""
    )
    page.close()
    assert outside == []
    assert complaints.console == []
