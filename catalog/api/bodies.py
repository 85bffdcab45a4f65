"""What a writing request says besides the values: why, and where the new values come from."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError

from catalog.api.problems import refusal, unknown_field
from catalog.api.values import shown_name
from catalog.changes import ValueSource
from catalog.specs import Confidence

REASON_CHARACTERS = 100
OVER_REST = ValueSource(source="entered over REST", confidence=Confidence.MEDIUM)
_LONGEST = {"source": 400, "source_licence": 80, "confidence": 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``value_source``: of the values that change; a new row names its own source in its columns."""

    reason: str = ""
    value_source: ValueSource = OVER_REST


def said(document: Mapping[str, object]) -> Said:
    """Read ``reason`` and ``value_source``. Raises ValidationError."""
    reason = document.get("reason", "")
    if not _is_text(reason, REASON_CHARACTERS):
        raise refusal({"reason": [_most(REASON_CHARACTERS)]}, "invalid")
    return Said(reason=reason, value_source=_source(document.get("value_source")))


def _source(given: object) -> ValueSource:
    if given is None:
        return OVER_REST
    if not isinstance(given, Mapping) or not given.get("source"):
        sentence = _("Send an object with at least “source”: where the values come from.")
        raise refusal({"value_source": [sentence]}, "invalid")
    problems = {shown_name(name): [_member_problem(name, value)] for name, value in given.items()}
    problems = {name: sentences for name, sentences in problems.items() if sentences != [None]}
    if problems:
        raise ValidationError({"value_source": problems})
    return ValueSource(**{**given, "confidence": Confidence(given.get("confidence", Confidence.MEDIUM))})


def _member_problem(name: str, value: object) -> str | None:
    if name not in _LONGEST:
        return unknown_field(list(_LONGEST))
    if not _is_text(value, _LONGEST[name]):
        return _most(_LONGEST[name])
    if name == "confidence" and value not in list(Confidence):
        return _("This is none of: %(words)s.") % {"words": ", ".join(Confidence)}
    return None


def _most(characters: int) -> str:
    return _("Send text of at most %(most)s characters.") % {"most": characters}


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and (value.isprintable() or not value)
