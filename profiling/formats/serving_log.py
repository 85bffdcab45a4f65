"""What a vLLM server writes of its load every few seconds: requests at a time, tokens per second, drafted tokens.

Lines as vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py of github.com/vllm-project/vllm print them.
"""

import re

from profiling.evidence import ServingLoad
from profiling.formats.capture import Capture, Format
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

KIND = "log of a vLLM server"

_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_LOAD = re.compile(
    rf"Avg prompt throughput: {_NUMBER} tokens/s, Avg generation throughput: {_NUMBER} tokens/s, "
    r"Running: (\d{1,9}) reqs"
)
_DRAFTS = re.compile(
    rf"SpecDecoding metrics: .{{0,20}}Mean acceptance length: {_NUMBER}, .{{0,200}}?"
    r"Accepted: (\d{1,12}) tokens, Drafted: (\d{1,12}) tokens"
)
_SPEC, _LOADED = "SpecDecoding metrics: ", "Avg generation throughput: "
_LONGEST = 2000


def recognises(head: Head) -> bool:
    return any(_LOADED in line and _LOAD.search(line[:_LONGEST]) is not None for line in head.lines)


def read(source: Source) -> Capture:
    """The mean load. Raises Refusal where the server generated nothing."""
    log = ServingLog()
    for line in source.lines():
        log.line(line)
    found = log.evidence()
    if found is None:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    return Capture(format=Format.SERVING_LOG, evidence=(found,), notes=(*source.notes, Note(NoteCode.NO_TIMELINE)))


class ServingLog:
    """Collects lines out of any text; those of a server that generates nothing do not count."""

    def __init__(self) -> None:
        self.lines = 0
        self.prompt = self.generated = self.running = 0.0
        self.drafted = self.drafts = 0.0

    def line(self, line: str) -> None:
        if _LOADED in line:
            if match := _LOAD.search(line[:_LONGEST]):
                self._load(float(match[1]), float(match[2]), int(match[3]))
        elif _SPEC in line and (match := _DRAFTS.search(line[:_LONGEST])):
            self._draft(float(match[1]), int(match[2]), int(match[3]))

    def _load(self, prompt: float, generated: float, running: int) -> None:
        if running and generated:
            self.lines += 1
            self.prompt += prompt
            self.generated += generated
            self.running += running

    def _draft(self, length: float, accepted: int, drafted: int) -> None:
        """A pass accepts ``length - 1`` drafted tokens on average, which tells how many passes there were."""
        if length > 1 and accepted:
            self.drafted += drafted
            self.drafts += accepted / (length - 1)

    def evidence(self) -> ServingLoad | None:
        if not self.lines:
            return None
        return ServingLoad(
            engine="vLLM",
            samples=self.lines,
            requests=self.running / self.lines,
            rows_per_request=1 + (self.drafted / self.drafts if self.drafts else 0.0),
            prompt_tokens_per_s=self.prompt / self.lines,
            generated_tokens_per_s=self.generated / self.lines,
        )

    def notes(self) -> list[Note]:
        """Nothing to say; for readers that collect several kinds of lines."""
        return []
