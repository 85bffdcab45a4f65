"""Jobs of many kinds, drawn at random: what the classifier is trained on.

Described jobs are transformers whose work the engine counts (``jobs_described.py``, ``jobs_served.py``) and other
models by their totals (``jobs_totals.py``). Measured ones (``jobs_measured.py``) are steps with random kernel shares,
as a capture would give them, which the engine carries over to other servers. What is drawn depends on the generator and
the tables of known models alone.
"""

from collections.abc import Callable, Mapping

from numpy.random import Generator

from advisor.training import jobs_described, jobs_measured, jobs_served, jobs_totals
from advisor.training.job import Family, Job, Stack

__all__ = ["PARTS", "Family", "Job", "Stack", "draw_job"]

PARTS: Mapping[Family, int] = {**dict.fromkeys(Family, 1), Family.DENSE: 2, Family.DECODE: 3}
"""How often each family is drawn. Serving is common, and its captures look like those of other jobs: were it rare
here, the classifier would be sure of compute wherever matrix kernels lead."""


def draw_job(family: Family, generator: Generator) -> Job:
    """One job of a family."""
    return _DRAWN[family](generator)


_DRAWN: Mapping[Family, Callable[[Generator], Job]] = {
    Family.DENSE: jobs_described.dense,
    Family.LONG_CONTEXT: jobs_described.long_context,
    Family.SMALL: jobs_described.small,
    Family.EXPERTS: jobs_described.experts,
    Family.ADAPTERS: jobs_described.adapters,
    Family.ENCODER: jobs_described.encoder,
    Family.VISION: jobs_described.vision,
    Family.PREFILL: jobs_served.prefill,
    Family.DECODE: jobs_served.decode,
    Family.MIXED: jobs_served.mixed,
    Family.NETWORK: jobs_totals.network,
    Family.DIFFUSION: jobs_totals.diffusion,
    Family.KNOWN: jobs_totals.known,
    Family.CONVOLUTION: jobs_measured.convolution,
    Family.RECOMMENDER: jobs_measured.recommender,
    Family.STENCIL: jobs_measured.stencil,
    Family.OTHER: jobs_measured.other,
}
