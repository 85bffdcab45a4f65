"""What bounds a job, in lines of text as the commands print it."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from profiling.bottleneck_messages import RESOURCES

SURENESS: Mapping[str, Promise] = {
    "sure": gettext_lazy("sure"),
    "likely": gettext_lazy("likely"),
    "unknown": gettext_lazy("cannot tell"),
}
"""How sure the classifier is of what bounds a captured job."""


def sureness_of(document: Mapping[str, Any]) -> str | None:
    """Which of ``SURENESS`` a bottleneck's document says; None where nobody asked the classifier."""
    if "sure" not in document or not document.get("evidence"):
        return None
    return "unknown" if document["label"] is None else "sure" if document["sure"] else "likely"


def bottleneck_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The label, what it rests on, what a replay says, and what each resource could save at most.

    ``document``: "bottleneck" of a capture's analysis or of an answer, whose notes have their sentences.
    """
    if (label := _label_line(document)) is not None:
        yield label
    notes = (*document.get("evidence", ()), *document.get("warnings", ()))
    replayed = document.get("replayed") or {}
    for note in (*notes, *filter(None, [replayed.get("note")])):
        yield note["sentence"]
    if (limits := _limits_line(replayed or document)) is not None:
        yield limits


def _label_line(document: Mapping[str, Any]) -> str | None:
    sureness, label = sureness_of(document), document.get("label")
    if label is None:
        return None if sureness is None else _("Bound by: %(word)s") % {"word": SURENESS[sureness]}
    name = _name(label)
    if sureness is not None:
        return _("Bound by: %(name)s; %(word)s") % {"name": name, "word": SURENESS[sureness]}
    if document.get("server"):
        words = {"name": name, "server": document["server"], "count": document["gpus"]}
        return _("Bound by: %(name)s on the first offer (%(server)s, GPUs used: %(count)s)") % words
    return _("Bound by: %(name)s") % {"name": name}


def _limits_line(document: Mapping[str, Any]) -> str | None:
    """Loading is named only where it takes time: most jobs do not say."""
    step_s, limits_s = document.get("step_s"), document.get("limits_s")
    if not step_s or not limits_s:
        return None
    told = [
        _("%(name)s %(percent)s%%") % {"name": _name(key), "percent": round(100 * (1 - least_s / step_s))}
        for key, least_s in sorted(limits_s.items(), key=lambda item: item[1])
        if key != "input" or least_s < step_s
    ]
    return _("If one resource were infinitely fast, the step would be shorter by at most: %(list)s.") % {
        "list": ", ".join(told)
    }


def _name(resource: str) -> str:
    return str(RESOURCES.get(resource, resource))
