"""Which accelerator of the catalog a printed name means. What is not certain stays unknown, with a reason.

In this order: the server that the catalog describes, a rule of ``catalog/data/accelerator_names.csv`` on name, memory
and provider, an alias that an editor settled, else unknown. A form factor is never assumed.
"""

import csv
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.importers.printed import PrintedOffer
from catalog.importers.printed_names import PrintedName, forms_in, taken_apart
from catalog.importers.providers import DATA
from catalog.specs import TopologyClass

GIGA = 10**9
MEMORY_SLACK = 0.1
OTHER_SIZE = 0.05
"""By how much sizes of one chip differ at least; what drivers and makers print of one card differs by less."""
SUGGESTIONS = 5
SIMILAR = 0.7
CACHE_LIMIT = 20_000


class Reason(StrEnum):
    """How an accelerator was found, or why none was."""

    SKU = "sku"
    RULE = "rule"
    ALIAS = "alias"
    FORM_FACTOR = "form-factor"
    MEMORY_DIFFERS = "memory-differs"
    CONTRADICTION = "contradiction"
    NAME_UNKNOWN = "name-unknown"


SENTENCES: Mapping[Reason, str | Promise] = {
    Reason.SKU: _("The catalog describes this server."),
    Reason.RULE: _("A rule on name, memory and provider says so."),
    Reason.ALIAS: _("An editor settled what this name means."),
    Reason.FORM_FACTOR: _("The name leaves form factor, memory or edition open, and this provider has no rule for it."),
    Reason.MEMORY_DIFFERS: _(
        "The list prints %(printed)s GB, %(name)s has %(known)s GB: a part of one, or another accelerator."
    ),
    Reason.CONTRADICTION: _("The name and the server's name say different form factors."),
    Reason.NAME_UNKNOWN: _("The catalog has no accelerator of this name."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is needed of an accelerator of the catalog."""

    memory_bytes: int
    form_factor: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """``accelerator``: key, None where unknown. ``how``: sku, rule, alias or unknown. ``suggestions``: keys."""

    accelerator: str | None
    reason: Reason
    params: Mapping[str, object] = field(default_factory=dict, hash=False)
    suggestions: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        return "unknown" if self.accelerator is None else self.reason.value

    @property
    def why(self) -> str:
        """One sentence in the reader's language."""
        return str(SENTENCES[self.reason]) % self.params


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    provider: str
    sku: str
    memory_gb: int | None
    count: int | None
    accelerator: str

    def score(self, printed: PrintedOffer, memory: float | None) -> tuple[int, float] | None:
        """How exactly the rule speaks of this offer, then how near its memory is; None where it does not apply."""
        if self.provider and self.provider != printed.provider:
            return None
        if self.sku and not fnmatchcase(printed.sku, self.sku):
            return None
        if self.memory_gb and not (memory and _close(memory, self.memory_gb * GIGA)):
            return None
        if self.count and printed.gpu_count != self.count:
            return None
        exactness = 8 * bool(self.provider) + 4 * bool(self.sku) + 2 * bool(self.memory_gb) + bool(self.count)
        return exactness, -abs(memory - self.memory_gb * GIGA) if memory and self.memory_gb else 0.0


def normalised(name: str) -> str:
    """The form under which an alias is kept: ``nvidia H100_SXM5-80G`` becomes ``H100 SXM 80GB``."""
    return str(taken_apart(name))


class Names:
    """Maps the offers of one import; answers are kept, as a list repeats each server in every region.

    ``skus``: ``provider/sku`` -> accelerator key. ``aliases``: (provider or "", normalised name) -> accelerator key.
    """

    def __init__(
        self, *, skus: Mapping[str, str], aliases: Mapping[tuple[str, str], str], accelerators: Mapping[str, Known]
    ) -> None:
        self._skus, self._aliases, self._accelerators = skus, aliases, accelerators
        self._chips = {key: taken_apart(known.name) for key, known in accelerators.items()}
        self._answers: dict[tuple[object, ...], Mapped] = {}

    def map(self, printed: PrintedOffer) -> Mapped:
        question = (
            *(printed.provider, printed.sku, printed.origin, printed.accelerator_name),
            *(printed.gpu_memory_bytes, printed.gpu_count),
        )
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= CACHE_LIMIT:
                self._answers.clear()
            answer = self._answers[question] = self._mapped(printed)
        return answer

    def _mapped(self, printed: PrintedOffer) -> Mapped:
        described = self._described(printed)
        if described:
            return Mapped(accelerator=described, reason=Reason.SKU)
        name = taken_apart(printed.accelerator_name)
        whole = PrintedName(name.chip, name.forms or forms_in(printed.sku), name.memory_gb)
        if PrintedName(name.chip, name.forms | forms_in(printed.sku), None).is_contradictory:
            return Mapped(accelerator=None, reason=Reason.CONTRADICTION, suggestions=self._suggestions(name))
        rule = self._rule(printed, whole)
        found = rule.accelerator if rule else self._own_name(name)
        reason = Reason.RULE
        if not found:
            found, reason = self._alias(printed, name), Reason.ALIAS
            if found and not fits_sku(printed.sku, self._accelerators[found].form_factor):
                return Mapped(accelerator=None, reason=Reason.CONTRADICTION, suggestions=self._suggestions(name))
        if not found:
            return self._unknown(whole)
        has_own_memory = bool(rule and rule.provider and rule.memory_gb)
        return self._checked(found, reason, printed, name, trust_memory=has_own_memory)

    def _described(self, printed: PrintedOffer) -> str | None:
        key = self._skus.get(f"{printed.provider}/{printed.sku}") or self._skus.get(printed.origin)
        return key if key in self._accelerators else None

    def _rule(self, printed: PrintedOffer, name: PrintedName) -> _Rule | None:
        memory = _memory(printed, name)
        exact = _best(_rules().get((name.chip, name.forms), ()), printed, memory)
        if exact or not name.forms:
            return exact if exact and exact.accelerator in self._accelerators else None
        plain = _best(_rules().get((name.chip, frozenset()), ()), printed, memory)
        known = self._accelerators.get(plain.accelerator) if plain else None
        return plain if known and _agrees(name.forms, known.form_factor) else None

    def _own_name(self, name: PrintedName) -> str | None:
        same = [key for key, own in self._chips.items() if own == name]
        return same[0] if len(same) == 1 else None

    def _alias(self, printed: PrintedOffer, name: PrintedName) -> str | None:
        key = self._aliases.get((printed.provider, str(name))) or self._aliases.get(("", str(name)))
        return key if key in self._accelerators else None

    def _checked(
        self, key: str, reason: Reason, printed: PrintedOffer, name: PrintedName, trust_memory: bool
    ) -> Mapped:
        known = self._accelerators[key]
        seen = [printed.gpu_memory_bytes, name.memory_gb and name.memory_gb * GIGA]
        wrong = next((memory for memory in seen if memory and not self._fits(memory, key)), None)
        if wrong is None or trust_memory:
            return Mapped(accelerator=key, reason=reason)
        params = {"printed": round(wrong / GIGA), "known": round(known.memory_bytes / GIGA), "name": known.name}
        suggestions = self._suggestions(name)
        return Mapped(accelerator=None, reason=Reason.MEMORY_DIFFERS, params=params, suggestions=suggestions)

    def _fits(self, memory: float, key: str) -> bool:
        """Whether a printed memory is this accelerator's, and not rather that of a sister with another size."""
        own, chip = self._accelerators[key].memory_bytes, self._chips[key].chip
        sisters = [self._accelerators[other].memory_bytes for other, name in self._chips.items() if name.chip == chip]
        is_a_sisters = any(
            abs(memory - size) < abs(memory - own) and abs(size - own) > OTHER_SIZE * own for size in sisters
        )
        return _close(memory, own) and not is_a_sisters

    def _unknown(self, name: PrintedName) -> Mapped:
        suggestions = self._suggestions(name)
        same_chip = any(self._chips[key].chip.startswith(name.chip) for key in suggestions if name.chip)
        reason = Reason.FORM_FACTOR if same_chip else Reason.NAME_UNKNOWN
        return Mapped(accelerator=None, reason=reason, suggestions=suggestions)

    def _suggestions(self, name: PrintedName) -> tuple[str, ...]:
        """Accelerators of the same chip first, then of a longer name, then those spelt much alike."""
        if not name.chip:
            return ()
        same = [key for key, own in self._chips.items() if own.chip == name.chip]
        longer = [key for key, own in self._chips.items() if len(name.chip) > 3 and own.chip.startswith(name.chip)]
        by_chip = {own.chip: key for key, own in self._chips.items()}
        alike = [by_chip[chip] for chip in difflib.get_close_matches(name.chip, by_chip, SUGGESTIONS, SIMILAR)]
        found = same or longer or alike
        if name.memory_gb and same:
            found = sorted(same, key=lambda key: abs(self._accelerators[key].memory_bytes / GIGA - name.memory_gb))
        return tuple(dict.fromkeys(found))[:SUGGESTIONS]


def fits_sku(sku: str, form_factor: str) -> bool:
    """False where the server's name says another form factor than that of the accelerator."""
    forms = forms_in(sku)
    is_card, is_module = form_factor.startswith("PCIe"), form_factor.startswith("SXM")
    return not ((is_card and "SXM" in forms) or (is_module and forms & {"PCIE", "NVL"}))


def topology_of(form_factor: str, count: Fraction | int, *, name: str = "") -> TopologyClass:
    """What is certain about how the accelerators of a server are joined, else UNKNOWN.

    ``name``: of the accelerator; a superchip's form factor alone does not tell a GB200 from a GH200.
    """
    if count <= 1:
        return TopologyClass.SINGLE
    if form_factor == "superchip" and name.upper().startswith(("GB200", "GB300")):
        return TopologyClass.NVL72
    if count == 8 and form_factor == "SXM2":
        return TopologyClass.NVLINK_HYBRID_CUBE_MESH
    if count == 8 and form_factor in ("SXM4", "SXM5", "SXM6"):
        return TopologyClass.NVSWITCH_FULL
    return TopologyClass.UNKNOWN


@cache
def _rules() -> dict[tuple[str, frozenset[str]], tuple[_Rule, ...]]:
    found: dict[tuple[str, frozenset[str]], tuple[_Rule, ...]] = {}
    with (DATA / "accelerator_names.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = taken_apart(row["printed"])
            rule = _Rule(
                provider=row["provider"],
                sku=row["sku"],
                memory_gb=int(row["memory_gb"]) if row["memory_gb"] else None,
                count=int(row["count"]) if row["count"] else None,
                accelerator=row["accelerator"],
            )
            key = (name.chip, name.forms)
            found[key] = (*found.get(key, ()), rule)
    return found


def _best(rules: tuple[_Rule, ...], printed: PrintedOffer, memory: float | None) -> _Rule | None:
    scored = [(score, rule) for rule in rules if (score := rule.score(printed, memory)) is not None]
    best = max((score for score, _rule in scored), default=None)
    first = [rule for score, rule in scored if score == best]
    same = len({rule.accelerator for rule in first}) == 1
    return first[0] if same else None


def _memory(printed: PrintedOffer, name: PrintedName) -> float | None:
    return name.memory_gb * GIGA if name.memory_gb else printed.gpu_memory_bytes


def _close(memory: float, known: float) -> bool:
    return abs(memory - known) <= MEMORY_SLACK * known


def _agrees(forms: frozenset[str], form_factor: str) -> bool:
    return (forms == {"PCIE"} and form_factor.startswith("PCIe")) or (
        forms == {"SXM"} and form_factor.startswith("SXM")
    )
