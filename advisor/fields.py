"""Form fields whose error is one sentence that names the allowed range."""

from collections.abc import Sequence
from decimal import Decimal

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _


def _between(template: str, low: float, high: float) -> str:
    return gettext(template) % {
        "low": number_format(Decimal(str(low)), force_grouping=True),
        "high": number_format(Decimal(str(high)), force_grouping=True),
    }


_between_lazy = lazy(_between, str)


class WholeNumber(forms.IntegerField):
    """An integer from ``low`` to ``high``; any other input gives the one sentence that says so."""

    def __init__(self, *, low: int, high: int, **options: object) -> None:
        sentence = _between_lazy(gettext_noop("Enter a whole number from %(low)s to %(high)s."), low, high)
        super().__init__(
            validators=[MinValueValidator(low, sentence), MaxValueValidator(high, sentence)],
            error_messages={"invalid": sentence},
            **options,
        )
        self.widget.attrs.update(min=low, max=high, inputmode="numeric")


class Amount(forms.FloatField):
    """A finite number from ``low`` to ``high``; any other input gives the one sentence that says so."""

    def __init__(self, *, low: float, high: float, **options: object) -> None:
        sentence = _between_lazy(gettext_noop("Enter a number from %(low)s to %(high)s."), low, high)
        super().__init__(
            validators=[MinValueValidator(low, sentence), MaxValueValidator(high, sentence)],
            error_messages={"invalid": sentence},
            **options,
        )
        self.widget.attrs.update(min=low, max=high, step="any", inputmode="decimal")


class _SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class CaptureFiles(forms.FileField):
    """One or many files; cleans to a list. Django's own field keeps only the last one."""

    widget = _SeveralFiles()

    def __init__(self, **options: object) -> None:
        super().__init__(error_messages={"required": _("Choose at least one file.")}, **options)

    def clean(self, data: Sequence[UploadedFile], initial: object = None) -> list[UploadedFile]:
        files = data or [None]
        return [super(CaptureFiles, self).clean(file, initial) for file in files]
