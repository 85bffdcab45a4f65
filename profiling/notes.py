"""What the cores tell the user: codes with parameters, so that every sentence can be translated.

The sentence that belongs to a code is in ``profiling.messages``. A :class:`Note` goes with an answer, a
:class:`Refusal` replaces it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Parameter = str | int | float


class Outcome(StrEnum):
    """How good an answer is, from best to worst."""

    OK = "ok"
    WARN = "warn"
    PARTIAL = "partial"
    SALVAGE = "salvage"
    ERROR = "error"


class NoteCode(StrEnum):
    BYTES_AFTER_GZIP = "bytes_after_gzip"
    FILE_TRUNCATED = "file_truncated"
    GZIP_DAMAGED = "gzip_damaged"
    ENCODING_CONVERTED = "encoding_converted"
    NAMES_NOT_UTF8 = "names_not_utf8"
    ESCAPES_REPAIRED = "escapes_repaired"
    CONTROL_CHARACTERS = "control_characters"
    BARE_NUMBERS = "bare_numbers"
    BARE_TOKENS = "bare_tokens"
    TRAILING_COMMA = "trailing_comma"
    DUPLICATE_KEYS = "duplicate_keys"
    EVENTS_UNREADABLE = "events_unreadable"
    METADATA_UNREADABLE = "metadata_unreadable"
    TEXT_AFTER_END = "text_after_end"
    PROFILER_WARNINGS = "profiler_warnings"
    NEGATIVE_DURATIONS = "negative_durations"
    BAD_TIMES = "bad_times"
    RUNAWAY_KERNELS = "runaway_kernels"
    CLOCKS_DIFFER = "clocks_differ"
    KERNELS_WITHOUT_LAUNCH = "kernels_without_launch"
    NO_HOST_OPERATORS = "no_host_operators"
    MESSAGE_SIZES_UNKNOWN = "message_sizes_unknown"
    SOME_SIZES_UNKNOWN = "some_sizes_unknown"
    UNKNOWN_DTYPE = "unknown_dtype"
    RANKS_MERGED = "ranks_merged"
    DUPLICATE_RANK = "duplicate_rank"
    RANKS_MISSING = "ranks_missing"
    FILES_IGNORED = "files_ignored"
    FRAGMENTS_IGNORED = "fragments_ignored"
    ARCHIVE_DAMAGED = "archive_damaged"
    NO_STEP_MARKERS = "no_step_markers"
    UNMARKED_REPETITION = "unmarked_repetition"
    STEPS_FROM_REPETITION = "steps_from_repetition"
    FIRST_STEP_EXCLUDED = "first_step_excluded"
    FIRST_STEPS_EXCLUDED = "first_steps_excluded"
    COMMUNICATION_UNVERIFIED = "communication_unverified"
    COLLECTIVES_NOT_ALIGNED = "collectives_not_aligned"
    WAITING_FOR_STRAGGLERS = "waiting_for_stragglers"
    PRECISION_ASSUMED = "precision_assumed"
    BATCH_UNKNOWN = "batch_unknown"
    DEVICE_UNKNOWN = "device_unknown"
    NO_TIMELINE = "no_timeline"
    NO_TIMES = "no_times"
    COARSE_SAMPLES = "coarse_samples"
    COUNTERS_NOT_MEASURED = "counters_not_measured"
    SAMPLES_IMPOSSIBLE = "samples_impossible"
    MACHINE_ONLY = "machine_only"
    ENVIRONMENT_NOT_READ = "environment_not_read"
    EVENTS_DROPPED = "events_dropped"
    VALUES_MISSING = "values_missing"
    IMPOSSIBLE_BANDWIDTHS = "impossible_bandwidths"
    WRONG_RESULTS = "wrong_results"
    CALL_TIMES_ONLY = "call_times_only"
    TIMED_ON_HOST = "timed_on_host"
    GPUDIRECT_MISSING = "gpudirect_missing"
    NO_PEER_ACCESS = "no_peer_access"
    COPIES_ONLY = "copies_only"
    TOO_FEW_VALUES = "too_few_values"
    GRAPHS_WHOLE = "graphs_whole"
    GRAPHS_UNDER_RECORDED = "graphs_under_recorded"
    KERNELS_MISSING = "kernels_missing"
    OCCUPANCY_UNKNOWN = "occupancy_unknown"
    STEPS_FROM_RANGES = "steps_from_ranges"
    EVENTS_CAPPED = "events_capped"
    COMMAND_BUFFERS = "command_buffers"
    COMMAND_BUFFERS_WHOLE = "command_buffers_whole"
    SUMMED_PAGE = "summed_page"


class BottleneckCode(StrEnum):
    """What bounds a job, what says so, and what should make one careful."""

    HOST_LEADS = "host_leads"
    IDLE_LEADS = "idle_leads"
    LOST_LEADS = "lost_leads"
    COPIES_LEAD = "copies_lead"
    WAITING_LEADS = "waiting_leads"
    COMPUTE_LEADS = "compute_leads"
    MEMORY_LEADS = "memory_leads"
    COMMUNICATION_LEADS = "communication_leads"
    COMMUNICATION_OR_WAITING = "communication_or_waiting"
    OF_RECORDED_WORK = "of_recorded_work"
    NO_CLEAR_LEAD = "no_clear_lead"
    NO_CLEAR_LEAD_OF_WORK = "no_clear_lead_of_work"
    TOO_FEW_KERNELS = "too_few_kernels"
    MATMUL_SHARE = "matmul_share"
    ATTENTION_SHARE = "attention_share"
    MEMORY_KERNEL_SHARE = "memory_kernel_share"
    OTHER_KERNEL_SHARE = "other_kernel_share"
    COPY_SHARE = "copy_share"
    EXPOSED_COMMUNICATION = "exposed_communication"
    HIDDEN_COMMUNICATION = "hidden_communication"
    IDLE_SHARE = "idle_share"
    MEAN_KERNEL = "mean_kernel"
    HOST_BOUND = "host_bound"
    HOST_BOUND_UNVERIFIED = "host_bound_unverified"
    IDLE_THOUGH_LAUNCHED = "idle_though_launched"
    MOSTLY_WAITING = "mostly_waiting"
    COMMUNICATION_UNVERIFIED = "exposed_unverified"
    SHORT_MATMULS = "short_matmuls"
    MANY_UNCLASSIFIED = "many_unclassified"
    ONLY_UTILISATION = "only_utilisation"
    TOO_FEW_SAMPLES = "too_few_samples"
    UTILISATION = "utilisation"
    MEMORY_UTILISATION = "memory_utilisation"
    SM_ACTIVE = "sm_active"
    PIPES_ACTIVE = "pipes_active"
    DRAM_ACTIVE = "dram_active"
    LINK_RATE = "link_rate"
    SUMMED_MATMUL_SHARE = "summed_matmul_share"
    SUMMED_MEMORY_SHARE = "summed_memory_share"
    SUMMED_COMMUNICATION_SHARE = "summed_communication_share"
    SUMMED_OTHER_SHARE = "summed_other_share"
    PROFILED_COMPUTE_SHARE = "profiled_compute_share"
    PROFILED_MEMORY_SHARE = "profiled_memory_share"
    PROFILED_LATENCY_SHARE = "profiled_latency_share"
    HOST_NOT_TOLD = "host_not_told"
    DEVICE_WORK_LEADS = "device_work_leads"
    STEP_COMPUTE_SHARE = "step_compute_share"
    STEP_NOT_TOLD = "step_not_told"
    FEW_ROWS = "few_rows"
    INPUT_LEADS = "input_leads"
    INPUT_BOUND = "input_bound"
    STREAMING_MATMULS = "streaming_matmuls"
    NARROW_MATMULS = "narrow_matmuls"
    UNEVEN_CALLS = "uneven_calls"
    THEN_BOUND_BY = "then_bound_by"
    UNSURE_STREAMING = "unsure_streaming"
    UNSURE_WAITING = "unsure_waiting"
    UNSURE_KERNELS = "unsure_kernels"
    REPLAY_AGREES = "replay_agrees"
    REPLAY_DISAGREES = "replay_disagrees"
    REPLAY_OPEN = "replay_open"


class RefusalCode(StrEnum):
    NO_FILE = "no_file"
    TOO_MANY_FILES = "too_many_files"
    UPLOAD_TOO_LARGE = "upload_too_large"
    FILE_MISSING = "file_missing"
    FILE_UNREADABLE = "file_unreadable"
    EMPTY_FILE = "empty_file"
    EMPTY_AFTER_DECOMPRESSION = "empty_after_decompression"
    TOO_MANY_BLANKS = "too_many_blanks"
    FILE_TRUNCATED = "file_truncated"
    TEXT_FILE = "text_file"
    UNKNOWN_BINARY = "unknown_binary"
    NOT_READ_YET = "not_read_yet"
    EXPORT_NEEDED = "export_needed"
    NESTED_COMPRESSION = "nested_compression"
    DECOMPRESSION_RATIO = "decompression_ratio"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_DEEP = "too_deep"
    TOO_MANY_EVENTS = "too_many_events"
    TOO_MANY_NAMES = "too_many_names"
    TOO_MANY_DEVICES = "too_many_devices"
    EVENT_TOO_LONG = "event_too_long"
    TOO_SLOW = "too_slow"
    INVALID_JSON = "invalid_json"
    TWO_DOCUMENTS = "two_documents"
    NO_TRACE_EVENTS = "no_trace_events"
    NO_EVENTS = "no_events"
    ONLY_METADATA = "only_metadata"
    NO_GPU_WORK = "no_gpu_work"
    NOT_A_GPU_TRACE = "not_a_gpu_trace"
    NO_TRACE_IN_FOLDER = "no_trace_in_folder"
    NOTHING_INSIDE = "nothing_inside"
    READING_OUTDATED = "reading_outdated"
    LINE_TOO_LONG = "line_too_long"
    DATABASE_DAMAGED = "database_damaged"
    CUDA_NOT_TRACED = "cuda_not_traced"
    NO_DISPATCHES = "no_dispatches"
    NO_COUNTERS = "no_counters"
    PART_OF_RUN = "part_of_run"
    NO_ROWS = "no_rows"
    PROTOBUF_DAMAGED = "protobuf_damaged"
    BINARY_AS_TEXT = "binary_as_text"
    NO_STREAM_ROWS = "no_stream_rows"
    TPU_PROFILE = "tpu_profile"
    TOOL_SUMMARY = "tool_summary"
    ARCHIVE_DAMAGED = "archive_damaged"
    ARCHIVE_ENCRYPTED = "archive_encrypted"
    ARCHIVE_METHOD = "archive_method"
    WINDOW_TOO_LARGE = "window_too_large"
    TOO_MANY_MEMBERS = "too_many_members"
    TOO_MANY_ROWS = "too_many_rows"
    COLUMNS_UNNAMED = "columns_unnamed"


WORSE_THAN_OK: Mapping[NoteCode, Outcome] = {
    NoteCode.FILE_TRUNCATED: Outcome.SALVAGE,
    NoteCode.GZIP_DAMAGED: Outcome.SALVAGE,
    NoteCode.EVENTS_UNREADABLE: Outcome.SALVAGE,
    NoteCode.NAMES_NOT_UTF8: Outcome.WARN,
    NoteCode.ESCAPES_REPAIRED: Outcome.WARN,
    NoteCode.CONTROL_CHARACTERS: Outcome.WARN,
    NoteCode.BARE_NUMBERS: Outcome.WARN,
    NoteCode.BARE_TOKENS: Outcome.WARN,
    NoteCode.TRAILING_COMMA: Outcome.WARN,
    NoteCode.DUPLICATE_KEYS: Outcome.WARN,
    NoteCode.METADATA_UNREADABLE: Outcome.WARN,
    NoteCode.TEXT_AFTER_END: Outcome.WARN,
    NoteCode.PROFILER_WARNINGS: Outcome.WARN,
    NoteCode.NEGATIVE_DURATIONS: Outcome.WARN,
    NoteCode.BAD_TIMES: Outcome.WARN,
    NoteCode.RUNAWAY_KERNELS: Outcome.WARN,
    NoteCode.CLOCKS_DIFFER: Outcome.WARN,
    NoteCode.KERNELS_WITHOUT_LAUNCH: Outcome.WARN,
    NoteCode.MESSAGE_SIZES_UNKNOWN: Outcome.PARTIAL,
    NoteCode.UNKNOWN_DTYPE: Outcome.WARN,
    NoteCode.RANKS_MERGED: Outcome.WARN,
    NoteCode.DUPLICATE_RANK: Outcome.WARN,
    NoteCode.FILES_IGNORED: Outcome.WARN,
    NoteCode.FRAGMENTS_IGNORED: Outcome.WARN,
    NoteCode.ARCHIVE_DAMAGED: Outcome.SALVAGE,
    NoteCode.UNMARKED_REPETITION: Outcome.WARN,
    NoteCode.FIRST_STEP_EXCLUDED: Outcome.WARN,
    NoteCode.FIRST_STEPS_EXCLUDED: Outcome.WARN,
    NoteCode.NO_TIMELINE: Outcome.PARTIAL,
    NoteCode.SUMMED_PAGE: Outcome.PARTIAL,
    NoteCode.NO_TIMES: Outcome.PARTIAL,
    NoteCode.ENVIRONMENT_NOT_READ: Outcome.WARN,
    NoteCode.EVENTS_DROPPED: Outcome.WARN,
    NoteCode.VALUES_MISSING: Outcome.WARN,
    NoteCode.COUNTERS_NOT_MEASURED: Outcome.WARN,
    NoteCode.SAMPLES_IMPOSSIBLE: Outcome.WARN,
    NoteCode.EVENTS_CAPPED: Outcome.WARN,
    NoteCode.COMMAND_BUFFERS_WHOLE: Outcome.PARTIAL,
    NoteCode.IMPOSSIBLE_BANDWIDTHS: Outcome.WARN,
    NoteCode.WRONG_RESULTS: Outcome.WARN,
    NoteCode.CALL_TIMES_ONLY: Outcome.PARTIAL,
    NoteCode.TIMED_ON_HOST: Outcome.WARN,
    NoteCode.COPIES_ONLY: Outcome.PARTIAL,
    NoteCode.TOO_FEW_VALUES: Outcome.WARN,
    NoteCode.GRAPHS_WHOLE: Outcome.PARTIAL,
    NoteCode.GRAPHS_UNDER_RECORDED: Outcome.PARTIAL,
    NoteCode.KERNELS_MISSING: Outcome.PARTIAL,
}
"""Notes that lower the outcome; all others are information."""

UPLOAD_LIMITS = frozenset(
    {
        RefusalCode.TOO_MANY_BYTES,
        RefusalCode.DECOMPRESSION_RATIO,
        RefusalCode.TOO_MANY_MEMBERS,
        RefusalCode.TOO_MANY_EVENTS,
        RefusalCode.TOO_SLOW,
    }
)
"""Where one file of an upload reaches these, the others are not read without it."""

_ORDER = tuple(Outcome)
_SHOWN = 80


def shown(text: str) -> str:
    """Text from a capture, fit for a sentence: short, control and direction characters spelled out."""
    return "".join(one if one.isprintable() else f"<U+{ord(one):04X}>" for one in text[:_SHOWN])[:_SHOWN]


@dataclass(frozen=True, slots=True)
class Note:
    """A code of one of the closed lists (of readers, classifier or engine) and what its sentence names."""

    code: StrEnum
    params: Mapping[str, Parameter] = field(default_factory=dict)


class Refusal(Exception):
    """The one exception of all readers: the input cannot be answered, and why."""

    def __init__(self, code: RefusalCode, params: Mapping[str, Parameter] | None = None) -> None:
        super().__init__(code, params)
        self.code = code
        self.params: Mapping[str, Parameter] = params or {}


def outcome_of(notes: Iterable[Note]) -> Outcome:
    """The worst outcome that any of the notes stands for."""
    levels = [WORSE_THAN_OK.get(note.code, Outcome.OK) for note in notes if isinstance(note.code, NoteCode)]
    return max(levels, key=_ORDER.index, default=Outcome.OK)
