"""The catalog's pages in Chromium."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import assert_drawn, assert_usable, unfold

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_buyer_finds_a_server_compares_it_and_sees_what_nvlink_costs(page: Page, catalog: None) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Catalog").click()
    unfold(page)
    page.get_by_label("H100 PCIe 80GB", exact=True).check()
    page.get_by_label("Accelerators, at least", exact=True).fill("8")
    page.get_by_role("button", name="Show servers").click()
    expect(page.get_by_role("list", name="Conditions in force")).to_contain_text("H100 PCIe 80GB")
    unfold(page)
    assert_usable(page)
    for sku in ("n3-H100x8", "n3-H100x8-NVLink"):
        page.get_by_label(f"Compare hyperstack/{sku}", exact=True).check()
    page.get_by_role("button", name="Compare the ticked servers").click()
    expect(page.get_by_role("table").filter(has_text="differs").first).to_be_visible()
    assert_usable(page)
    page.get_by_role("link", name="Hyperstack n3-H100x8-NVLink").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("8 × H100 PCIe 80GB")
    unfold(page)
    assert_drawn(page)
    assert_usable(page)
    page.goto("/catalog/premium/")
    expect(page.get_by_role("heading", name="The link alone")).to_be_visible()
    assert_drawn(page)
    assert_usable(page)


def test_a_bad_value_is_told_beside_its_field(plain_page: Page) -> None:
    plain_page.goto("/catalog/?gpu_count_min=none&min_memory_gb=80")
    expect(plain_page.locator("#error_1_id_gpu_count_min")).to_be_visible()
    expect(plain_page.get_by_label("Memory of one accelerator")).to_have_value("80")
