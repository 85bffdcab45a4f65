"""Reasons as data: the codes that predictions and answers carry. Their sentences live in ``advisor/messages.py``."""

from collections.abc import Mapping
from enum import StrEnum

from profiling.notes import Parameter


class EngineCode(StrEnum):
    """Why a figure is what it is, why a range is wide, why something is missing."""

    ACCELERATOR_UNKNOWN = "accelerator_unknown"
    ACCELERATOR_UNNAMED = "accelerator_unnamed"
    ACCELERATOR_NOT_MEASURED = "accelerator_not_measured"
    ANCHOR_IMPOSSIBLE = "anchor_impossible"
    CAPTURED_FAMILY_NOT_COMPARED = "captured_family_not_compared"
    CAPTURE_NOT_DATA_PARALLEL = "capture_not_data_parallel"
    CAPTURE_WITHOUT_WORK = "capture_without_work"
    COLLECTIVE_BYTES_ESTIMATED = "collective_bytes_estimated"
    COUNT_NOT_COMPARED = "count_not_compared"
    DOES_NOT_FIT = "does_not_fit"
    DTYPE_FALLBACK = "dtype_fallback"
    FABRIC_ASSUMED = "fabric_assumed"
    FABRIC_UNKNOWN = "fabric_unknown"
    FIRST_OFFERS_USE_ONE_GPU = "first_offers_use_one_gpu"
    GRADIENT_SIZE_UNKNOWN = "gradient_size_unknown"
    GRADIENTS_ASSUMED = "gradients_assumed"
    GROUPS_ASSUMED = "groups_assumed"
    HOST_BOUND_THERE = "host_bound_there"
    INPUT_BOUND_THERE = "input_bound_there"
    MARKET_OF_ONE_GPU = "market_of_one_gpu"
    MARKET_OF_OTHER_PROVIDERS = "market_of_other_providers"
    MARKET_OF_OTHER_REGIONS = "market_of_other_regions"
    MEMORY_DIFFERS = "memory_differs"
    MEMORY_TIGHT = "memory_tight"
    MEMORY_UNKNOWN = "memory_unknown"
    NETWORK_UNKNOWN = "network_unknown"
    NETWORKS_DIFFER = "networks_differ"
    NO_CLEAR_WINNER = "no_clear_winner"
    NO_LEGAL_PLAN = "no_legal_plan"
    NO_OFFERS = "no_offers"
    NO_RATE_FOR_PRECISION = "no_rate_for_precision"
    NO_STEP_TIMES = "no_step_times"
    NOT_DIVIDED = "not_divided"
    NOTHING_FITS = "nothing_fits"
    OFFERS_DO_NOT_FIT = "offers_do_not_fit"
    OFFERS_IN_OTHER_CURRENCY = "offers_in_other_currency"
    OFFERS_MEMORY_UNKNOWN = "offers_memory_unknown"
    OFFERS_NETWORK_UNKNOWN = "offers_network_unknown"
    OFFERS_TOO_OLD = "offers_too_old"
    ONLY_LARGER_SERVERS = "only_larger_servers"
    PLAN_INVALID = "plan_invalid"
    REPLICAS_ASSUMED = "replicas_assumed"
    REPLAY_NOT_POSSIBLE = "replay_not_possible"
    SERVERS_TOO_SMALL = "servers_too_small"
    STEPS_ASSUMED = "steps_assumed"
    TRANSFER_UNVERIFIED = "transfer_unverified"
    WEAK_SCALING = "weak_scaling"
    WHOLE_SERVER_PAID = "whole_server_paid"


class VerdictCode(StrEnum):
    """The one sentence that stands on top."""

    WORTH_IT = "verdict_worth_it"
    WORTH_IT_ASSUMED = "verdict_worth_it_assumed"
    NOT_WORTH_IT = "verdict_not_worth_it"
    NO_CLEAR_WINNER = "verdict_no_clear_winner"
    NO_GAIN = "verdict_no_gain"
    NO_MARKET = "verdict_no_market"
    NO_PAIR = "verdict_no_pair"
    NO_OFFERS = "verdict_no_offers"
    NOTHING_FITS = "verdict_nothing_fits"
    UNDIVIDED = "verdict_undivided"
    CAPTURED_COUNT = "verdict_captured_count"
    ONE_GPU_CAPTURED = "verdict_one_gpu_captured"


class EngineRefusal(Exception):
    """There is no answer, and why."""

    def __init__(self, code: EngineCode, **params: Parameter) -> None:
        super().__init__(code, params)
        self.code = code
        self.params: Mapping[str, Parameter] = params
