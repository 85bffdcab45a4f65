"""How old a price is, in words."""

from datetime import date

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

AGES: tuple[tuple[int, str | Promise], ...] = (
    (30, _("seen within 30 days")),
    (90, _("seen within 90 days")),
)
"""Days, at most, and the words for it; what is older has the words below."""
OLDER = _("older than 90 days")


def age_words(seen_on: date, today: date) -> str:
    """Of a price whose year alone is known ``seen_on`` is that year's first day: it counts as old as it may be."""
    days = (today - seen_on).days
    return str(next((words for most, words in AGES if days <= most), OLDER))
