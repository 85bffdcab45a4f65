"""What publishing a draft would change in stored studies, before anybody publishes it."""

from collections.abc import Iterator
from datetime import date

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from advisor.draft_effect import effects
from advisor.engine.cost import Goal
from advisor.models import Study
from advisor.services import create_described_study
from catalog.drafts import Edit, save_drafts
from catalog.loading import load_catalog
from catalog.models import Draft, Offer
from profiling.presets import PRESETS

TODAY = date(2026, 12, 1)


@pytest.fixture(scope="module")
def study(django_db_setup: None, django_db_blocker: object) -> Iterator[Study]:
    with django_db_blocker.unblock(), transaction.atomic():
        load_catalog()
        goal = Goal(as_of=TODAY, samples=1e4, gpus=8)
        workload = PRESETS[0].workload
        yield create_described_study(owner="session:secret", title="Our secret plan", workload=workload, goal=goal)
        transaction.set_rollback(True)


def first_offer(study: Study) -> Offer:
    return Offer.objects.get(key=study.result["offers"][0]["offer"])


@pytest.mark.django_db
def test_a_dearer_price_moves_its_offer_down_and_the_catalog_stays(study: Study) -> None:
    offer = first_offer(study)
    draft = price_draft(offer, offer.price_per_hour * 2)
    (effect,) = effects([draft])
    moved = next(place for place in effect.places if place.before == 1)
    assert moved.after is None or moved.after > 1
    assert effect.differs
    assert first_offer(study).price_per_hour == offer.price_per_hour


@pytest.mark.django_db
def test_no_draft_that_matters_changes_nothing(study: Study) -> None:
    offer = first_offer(study)
    (draft,) = save_drafts([Edit(table="offers", key=offer.key, values={"notes": "looked at"})], user=None)
    (effect,) = effects([draft])
    assert not effect.differs
    assert effect.before.offers


@pytest.mark.django_db
def test_a_fact_of_an_accelerator_reaches_the_ranking(study: Study) -> None:
    accelerator = first_offer(study).server.accelerator
    slower = {"dense_bf16_flops_per_s": accelerator.dense_bf16_flops_per_s / 4}
    (draft,) = save_drafts([Edit(table="accelerators", key=accelerator.key, values=slower)], user=None)
    (effect,) = effects([draft])
    assert effect.differs


@pytest.mark.django_db
def test_the_page_tells_it_without_naming_whose_study_it_is(study: Study, client: Client) -> None:
    offer = first_offer(study)
    draft = price_draft(offer, offer.price_per_hour * 2)
    client.force_login(User.objects.create_superuser("chief"))
    page = client.get(reverse("catalog-draft-effect"), {"draft": draft.pk}).content.decode()
    assert str(study.pk)[:8] in page
    assert offer.server.key in page
    assert "secret" not in page


@pytest.mark.django_db
def test_only_people_who_may_see_drafts_see_the_page(client: Client) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert client.get(reverse("catalog-draft-effect")).status_code == 403


@pytest.mark.django_db
def test_a_draft_overtaken_by_another_change_is_told(study: Study, client: Client) -> None:
    offer = first_offer(study)
    draft = price_draft(offer, offer.price_per_hour * 2)
    Offer.objects.filter(pk=offer.pk).update(version=offer.version + 1)
    client.force_login(User.objects.create_superuser("chief"))
    page = client.get(reverse("catalog-draft-effect"), {"draft": draft.pk}).content.decode()
    assert "has changed since its draft began" in page


def price_draft(offer: Offer, price: object) -> Draft:
    (draft,) = save_drafts([Edit(table="offers", key=offer.key, values={"price_per_hour": price})], user=None)
    return draft
