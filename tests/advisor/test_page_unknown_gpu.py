"""A capture of a GPU that the catalog does not know: what it shows is shown, the rest is said to be unknown."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from advisor.sample import ensure_sample_study
from tests.advisor.test_page_result import text_of
from tests.advisor.test_pages import assert_sound
from tests.workers import answer


@pytest.mark.django_db
def test_breakdown_and_bottleneck_without_prediction(browser: Client) -> None:
    study = ensure_sample_study(today=timezone.now().date())
    answer(study.run)
    response = browser.get(study.get_absolute_url())
    text = text_of(response)
    assert response.status_code == 200
    assert_sound(response.content.decode())
    assert "which the catalog does not know" in text
    assert "captured: 8 × NVIDIA A100-SXM4-80GB" in text
    assert "What the capture shows" in text
    assert "Offers, best first" not in text
    assert browser.get(reverse("study-chart", args=[study.pk, "breakdown"])).status_code == 200
    assert "How it scales" not in text
