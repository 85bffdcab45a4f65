"""A model's config.json as Hugging Face publishes it, pasted or uploaded. It is never fetched from there."""

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.figures import size
from profiling.hf_config import ConfigReading, parse_config, read_config
from profiling.workload_errors import WorkloadError
from profiling.workload_messages import workload_sentence

MOST_BYTES = 256 * 1024
"""Those of public models have 1 to 10 kB."""


class ConfigForm(forms.Form):
    """``cleaned_data["reading"]`` is what the configuration says: a ConfigReading."""

    config_text = forms.CharField(
        label=_("Its text"), required=False, strip=True, widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"})
    )
    config_file = forms.FileField(label=_("or the file"), required=False, allow_empty_file=True)

    def clean(self) -> dict[str, object] | None:
        text, file = self.cleaned_data.get("config_text"), self.cleaned_data.get("config_file")
        field = "config_file" if file else "config_text"
        content = file.read(MOST_BYTES + 1) if file else str(text or "").encode()
        if self.errors:
            return self.cleaned_data
        if len(content) > MOST_BYTES:
            self.add_error(
                field, gettext("This is larger than %(limit)s: no config.json.") % {"limit": size(MOST_BYTES)}
            )
        elif not content.strip():
            self.add_error(field, gettext("Paste the text, or choose the file."))
        else:
            self._read(field, content)
        return self.cleaned_data

    def _read(self, field: str, content: bytes) -> None:
        try:
            reading: ConfigReading = read_config(parse_config(content))
        except WorkloadError as error:
            self.add_error(field, workload_sentence(error))
        else:
            self.cleaned_data["reading"] = reading
