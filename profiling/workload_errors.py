"""Why a workload or a model configuration is refused: a code, the place, and what the sentence of the code names."""

from collections.abc import Mapping
from enum import StrEnum


class WorkloadCode(StrEnum):
    """Why a workload document, or the configuration of a model, is refused."""

    NOT_AN_OBJECT = "workload_not_an_object"
    NOT_A_LIST = "workload_not_a_list"
    TOO_MANY_ITEMS = "workload_too_many_items"
    UNKNOWN_FIELD = "workload_unknown_field"
    MISSING_FIELD = "workload_missing_field"
    NOT_TEXT = "workload_not_text"
    NOT_A_NUMBER = "workload_not_a_number"
    NOT_A_WHOLE_NUMBER = "workload_not_a_whole_number"
    NOT_A_BOOLEAN = "workload_not_a_boolean"
    OUT_OF_RANGE = "workload_out_of_range"
    NOT_A_CHOICE = "workload_not_a_choice"
    NEEDS_MODEL_OR_MEASURED = "workload_needs_model_or_measured"
    MODEL_AND_TOTALS = "workload_model_and_totals"
    NEEDS_FIELD = "workload_needs_field"
    NOT_IN_MODE = "workload_not_in_mode"
    EXCEEDS = "workload_exceeds"
    NOT_DIVISIBLE = "workload_not_divisible"
    PARTS_EXCEED_STEP = "workload_parts_exceed_step"
    NOT_JSON = "config_not_json"
    TOO_LARGE = "config_too_large"
    STATE_SPACE_MODEL = "config_state_space_model"
    ENCODER_DECODER_MODEL = "config_encoder_decoder_model"
    COMPRESSED_ATTENTION = "config_compressed_attention"
    NOT_A_TRANSFORMER = "config_not_a_transformer"


class WorkloadError(ValueError):
    """``pointer``: JSON pointer to the place; ``params``: what the sentence of the code names."""

    def __init__(self, code: WorkloadCode, pointer: str, **params: str | int | float) -> None:
        super().__init__(code, pointer, params)
        self.code = code
        self.pointer = pointer
        self.params: Mapping[str, str | int | float] = {"field": pointer.lstrip("/") or "/", **params}
