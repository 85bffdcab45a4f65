"""Sentences for the codes in a stored answer, in the language of whoever reads it."""

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from advisor import messages as engine_messages
from profiling.bottleneck_messages import FINDINGS
from profiling.messages import NOTES, in_words, with_file

_TEMPLATES = ChainMap(NOTES, FINDINGS, engine_messages.SENTENCES, engine_messages.VERDICTS)


def sentence(code: str, params: Mapping[str, Any]) -> str:
    """The sentence of a note, reason or verdict. KeyError for a code that no table knows."""
    return with_file(str(_TEMPLATES[code]) % _Params(in_words(params)), params)


def stored_sentence(coded: Mapping[str, Any]) -> str:
    """The same for one ``{"code", "params"}`` of a stored answer: for a code of an older version, what it said then."""
    try:
        return sentence(coded["code"], coded["params"])
    except (KeyError, ValueError):
        return coded.get("sentence", coded["code"])


class _Params(dict[str, Any]):
    """A stored answer may be older than a sentence that names one thing more: that is unknown then."""

    def __missing__(self, name: str) -> str:
        return gettext("unknown")


def worded(answer: Any) -> Any:
    """A copy of the answer in which every ``{"code", "params"}`` also has its ``sentence``."""
    if isinstance(answer, list):
        return [worded(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    copy = {name: worded(item) if name != "params" else item for name, item in answer.items()}
    if "code" in copy and "params" in copy:
        copy["sentence"] = stored_sentence(copy)
    return copy
