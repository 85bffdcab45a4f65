"""What a buyer adds to a capture: facts of the job that a profiler does not record."""

from dataclasses import dataclass, replace

from profiling.workload import Mode, ModelShape, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureHints:
    """None = as the capture says, or unknown. ``accelerator``: the catalog's key of what the capture ran on."""

    mode: Mode | None = None
    precision: str | None = None
    batch_per_step: float | None = None
    parameters: float | None = None
    model: ModelShape | None = None
    accelerator: str | None = None

    def applied_to(self, workload: Workload) -> Workload:
        """The workload with these facts in the place of what the capture suggested."""
        given = {
            "mode": self.mode,
            "precision": self.precision,
            "batch_per_step": self.batch_per_step,
            "parameters": self.parameters,
            "model": self.model,
        }
        return replace(workload, **{name: value for name, value in given.items() if value is not None})
