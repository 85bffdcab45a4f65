"""Why a row is not predicted: what it does not state and nobody can know, or what the engine cannot do."""

from enum import StrEnum


class Reason(StrEnum):
    BATCH_UNKNOWN = "batch_unknown"
    GPU_UNKNOWN = "gpu_unknown"
    GPUS_UNKNOWN = "gpus_unknown"
    LAYOUT_INCONSISTENT = "layout_inconsistent"
    MODE_UNKNOWN = "mode_unknown"
    PRECISION_UNKNOWN = "precision_unknown"
    SEQUENCE_UNKNOWN = "sequence_unknown"
    SERVING_SHAPE_UNKNOWN = "serving_shape_unknown"
    SHAPE_UNKNOWN = "shape_unknown"
    SPECULATIVE_DECODING = "speculative_decoding"
    STATE_SPACE_LAYERS = "state_space_layers"
    TIME_UNKNOWN = "time_unknown"


class RowRefused(Exception):
    """``reason``: a Reason, or the engine's own code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
