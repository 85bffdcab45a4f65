"""What bounds a job, as its page shows it: the answer, how sure it is, what a replay says, and what it would change.

Answers of older versions lack some of it, and then it is not shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.captured import IdleCause
from advisor.engine.document import Document
from advisor.labels import HOST_UNSEEN_ADVICE, SURENESS_MEANS, name_of
from advisor.wording import stored_sentence
from profiling.bottleneck import SURE
from profiling.bottleneck_messages import RESOURCES
from profiling.bottleneck_text import SURENESS, sureness_of
from profiling.notes import BottleneckCode

_WARNINGS = frozenset({BottleneckCode.HOST_BOUND, BottleneckCode.HOST_BOUND_UNVERIFIED, BottleneckCode.INPUT_BOUND})
_HOST_CAUSES = ("launch_bound_us", "synchronisation_us")
_WORTH_ADVICE = 0.25
"""Part of the larger of two causes from which advice on the smaller one is given too."""
_TOLD_ELSEWHERE = _WARNINGS | {BottleneckCode.THEN_BOUND_BY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What more of one resource would change. ``sooner``: part of the step that 10 % more speed saves, about;
    ``step_s``: the step if it took no time, and ``most`` the part of the step that this saves. None = not answered.
    """

    name: str
    sooner: float | None
    step_s: float | None
    most: float | None

    @property
    def bar(self) -> float:
        """From 0 to 1, to look at."""
        return (10 * (self.sooner or 0.0)) if self.most is None else self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """One machine, and what each resource would change there: first what bounds the job, as the label means it."""

    title: str
    step_s: float | None
    rows: Sequence[Gain]
    is_transfer_unverified: bool = False

    @property
    def has_limits(self) -> bool:
        return any(row.most is not None for row in self.rows)

    @property
    def has_sensitivities(self) -> bool:
        return any(row.sooner is not None for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """``advice``: what helps, where the sentence itself does not say."""

    sentence: str
    advice: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The classifier's word on a capture, the engine's on the first offer otherwise.

    ``document``: the bottleneck of a stored answer. ``machines``: title, and the document that holds ``step_s``,
    ``sensitivities`` and ``limits_s`` there. ``idle_causes``: of the capture.
    """

    document: Document
    machines: Sequence[tuple[str, Document]]
    idle_causes: Sequence[IdleCause] = ()

    @property
    def name(self) -> str | None:
        label = self.document["label"]
        return name_of(RESOURCES, label) if label else None

    @property
    def statement(self) -> str | None:
        """What leads, of a captured job."""
        return next((text for _code, text in self._findings()), None)

    @property
    def then(self) -> str | None:
        """What bounds the GPUs' own work, where the host comes first."""
        return next((text for code, text in self._findings() if code == BottleneckCode.THEN_BOUND_BY), None)

    @property
    def sureness(self) -> str | None:
        """In a word; None where nobody asked."""
        return name_of(SURENESS, self._sure) if self._sure else None

    @property
    def sureness_means(self) -> str | None:
        """The word in a sentence; where nothing can be told, the statement has the reason."""
        if self._sure != "likely":
            return name_of(SURENESS_MEANS, "sure") if self._sure == "sure" else None
        chance = self.document.get("probabilities", {}).get(self.document["label"], 0.0)
        return name_of(SURENESS_MEANS, "may_change" if chance >= SURE else "likely")

    @property
    def probabilities(self) -> list[tuple[str, float]]:
        shares = self.document.get("probabilities", {})
        return [(name_of(RESOURCES, key), share) for key, share in sorted(shares.items(), key=lambda item: -item[1])]

    @property
    def replay(self) -> str | None:
        """Whether a replay of the captured step, which the label is defined by, says the same."""
        note = self._replayed.get("note")
        return sentence(note) if note else None

    @property
    def replay_differs(self) -> bool:
        return self._replayed.get("agrees") is False

    @property
    def gains(self) -> list[Gains]:
        return [table for title, machine in self.machines if (table := _gains(title, machine)).rows]

    @property
    def has_limits(self) -> bool:
        return any(table.has_limits for table in self.gains)

    @property
    def warnings(self) -> list[Warned]:
        """Cheaper to fix than to rent around, with what helps."""
        found = [(code, text) for code, text in self._findings() if code in _WARNINGS]
        there = [(note["code"], sentence(note)) for note in self.document.get("warnings", ())]
        return [Warned(sentence=text, advice=self._advice(code)) for code, text in (*found, *there)]

    @property
    def evidence(self) -> list[str]:
        """Everything else that was found."""
        return [text for code, text in list(self._findings())[1:] if code not in _TOLD_ELSEWHERE]

    @property
    def _sure(self) -> str | None:
        return sureness_of(self.document)

    @property
    def _replayed(self) -> Document:
        return self.document.get("replayed") or {}

    def _advice(self, code: str) -> list[str]:
        if code == BottleneckCode.HOST_BOUND_UNVERIFIED:
            return [str(HOST_UNSEEN_ADVICE)]
        if code != BottleneckCode.HOST_BOUND:
            return []
        causes = sorted(_told(self.idle_causes), key=lambda cause: -(cause.time_us or 0.0))
        least = _WORTH_ADVICE * (causes[0].time_us or 0.0) if causes else 0.0
        return [cause.advice for cause in causes if (cause.time_us or 0.0) >= least]

    def _findings(self) -> Iterator[tuple[str, str]]:
        for note in self.document.get("evidence", ()):
            yield note["code"], sentence(note)


def gain(predicted: Document, resource: str) -> float | None:
    """Part of the step of an offer that is saved if the resource took no time, 0 to 1; None where that is unknown."""
    return _saved(predicted["step_s"], (predicted.get("limits_s") or {}).get(resource))


def sentence(coded: Document) -> str:
    """No line break between a number and its percent sign."""
    return stored_sentence(coded).replace(" %", "\u00a0%")


def _told(causes: Iterable[IdleCause]) -> Iterator[IdleCause]:
    return (cause for cause in causes if cause.key in _HOST_CAUSES and cause.time_us)


def _gains(title: str, machine: Document) -> Gains:
    """Loading takes a row only where it takes time: most answers do not know of it."""
    step_s = machine.get("step_s")
    sensitivities: Mapping[str, float] = machine.get("sensitivities") or {}
    limits_s: Mapping[str, float] = machine.get("limits_s") or {}
    rows = [
        Gain(
            name=name_of(RESOURCES, key),
            sooner=sensitivities[key] / 10 if key in sensitivities else None,
            step_s=limits_s.get(key),
            most=_saved(step_s, limits_s.get(key)),
        )
        for key in dict.fromkeys((*sensitivities, *limits_s))
        if key != "input" or sensitivities.get(key)
    ]
    return Gains(
        title=title,
        step_s=step_s,
        rows=sorted(rows, key=lambda row: (-(row.sooner or 0.0), -row.bar)),
        is_transfer_unverified=bool(machine.get("transfer_unverified")),
    )


def _saved(step_s: float | None, least_s: float | None) -> float | None:
    return None if not step_s or least_s is None else min(max(1 - least_s / step_s, 0.0), 1.0)
