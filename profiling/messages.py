"""The sentence that belongs to a code, translatable. Parameters are named; what a capture contains is quoted short."""

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from profiling.bottleneck_messages import FINDINGS, RESOURCES
from profiling.notes import BottleneckCode, Note, NoteCode, Refusal, RefusalCode

NOTES: Mapping[NoteCode, Promise] = {
    NoteCode.BYTES_AFTER_GZIP: _("Bytes after the %(kind)s stream were ignored."),
    NoteCode.FILE_TRUNCATED: _("The file is truncated: only the %(events)s events before the cut are counted."),
    NoteCode.GZIP_DAMAGED: _("The compressed data are damaged: only the %(events)s events before are counted."),
    NoteCode.ENCODING_CONVERTED: _("The file was converted from %(encoding)s."),
    NoteCode.NAMES_NOT_UTF8: _("%(count)s name(s) are not valid UTF-8; unreadable characters were replaced."),
    NoteCode.ESCAPES_REPAIRED: _("Invalid escapes repaired: %(count)s backslash(es) in strings."),
    NoteCode.CONTROL_CHARACTERS: _("Control characters in strings were replaced by spaces (%(count)s string(s))."),
    NoteCode.BARE_NUMBERS: _("%(count)s value(s) are inf or nan and count as unknown (occupancy and the like)."),
    NoteCode.BARE_TOKENS: _("Bare token repaired: %(count)s value(s) that are not JSON count as unknown."),
    NoteCode.TRAILING_COMMA: _("A trailing comma was removed (%(count)s)."),
    NoteCode.DUPLICATE_KEYS: _("Duplicate keys in %(count)s event(s): the last value counts."),
    NoteCode.EVENTS_UNREADABLE: _("%(count)s event(s) could not be read and are not counted."),
    NoteCode.METADATA_UNREADABLE: _("The description of the machine in the file could not be read."),
    NoteCode.TEXT_AFTER_END: _("Text after the end of the trace was ignored."),
    NoteCode.PROFILER_WARNINGS: _("The profiler itself reported problems, such as dropped records: “%(first)s”."),
    NoteCode.NEGATIVE_DURATIONS: _("%(count)s event(s) with negative duration dropped."),
    NoteCode.BAD_TIMES: _("%(count)s event(s) without a usable time dropped."),
    NoteCode.RUNAWAY_KERNELS: _("%(count)s kernel(s) overlap their successors on the same stream and were clipped."),
    NoteCode.CLOCKS_DIFFER: _(
        "The device clock is about %(lead_us)s us ahead of the host clock; launch delays are unknown."
    ),
    NoteCode.KERNELS_WITHOUT_LAUNCH: _("%(count)s kernels have no usable launch in the file."),
    NoteCode.NO_HOST_OPERATORS: _("No CPU ops recorded: what the host did is unknown."),
    NoteCode.MESSAGE_SIZES_UNKNOWN: _(
        "Message sizes not recorded for %(count)s collective(s); their bandwidth is unknown."
    ),
    NoteCode.SOME_SIZES_UNKNOWN: _("Message sizes of %(count)s collective(s) are not in the capture."),
    NoteCode.UNKNOWN_DTYPE: _("Unknown dtype “%(names)s”: message sizes with it are unknown."),
    NoteCode.RANKS_MERGED: _("%(count)s ranks are merged in one file; each is analysed by itself."),
    NoteCode.DUPLICATE_RANK: _("Rank %(rank)s appears in %(count)s files."),
    NoteCode.RANKS_MISSING: _("%(seen)s of %(world)s ranks were uploaded."),
    NoteCode.FILES_IGNORED: _("Ignored %(names)s: %(why)s"),
    NoteCode.FRAGMENTS_IGNORED: _("Ignored %(names)s: a fragment that belongs to %(whole)s."),
    NoteCode.ARCHIVE_DAMAGED: _("The archive %(names)s is damaged: only the files before the damage are read."),
    NoteCode.NO_STEP_MARKERS: _("No step markers in the capture: the whole window is taken as one step."),
    NoteCode.UNMARKED_REPETITION: _(
        "No step markers, but the same kernels repeat %(count)s times: each repetition is taken as one step. Mark the "
        "steps if these are the layers of one."
    ),
    NoteCode.STEPS_FROM_REPETITION: _(
        "Steps are not marked; the same kernels repeat %(count)s times, and each repetition is taken as one step. Mark "
        "the steps if these are the layers of one."
    ),
    NoteCode.FIRST_STEP_EXCLUDED: _("First step excluded as an outlier (%(ratio)sx the others)."),
    NoteCode.FIRST_STEPS_EXCLUDED: _(
        "The first %(count)s steps are excluded as outliers (the first: %(ratio)sx the others)."
    ),
    NoteCode.COMMUNICATION_UNVERIFIED: _(
        "One rank cannot tell waiting from transfer: upload all ranks to verify what communication costs."
    ),
    NoteCode.COLLECTIVES_NOT_ALIGNED: _(
        "The collectives of the ranks could not be matched (ranks are missing, their groups are unknown, or they ran "
        "different ones), so waiting could not be told from transfer."
    ),
    NoteCode.WAITING_FOR_STRAGGLERS: _(
        "%(percent)s%% of the communication time is waiting: rank(s) %(ranks)s come %(late_ms)s ms late each time."
    ),
    NoteCode.PRECISION_ASSUMED: _("No kernel name tells the number format; %(precision)s is assumed."),
    NoteCode.BATCH_UNKNOWN: _("The capture does not tell the batch size; results are per step."),
    NoteCode.DEVICE_UNKNOWN: _("The capture does not name the GPU."),
    NoteCode.SUMMED_PAGE: _(
        "A page of the TensorFlow profiler sums a trace up; for a prediction upload the .xplane.pb file of that run."
    ),
    NoteCode.NO_TIMELINE: _("A summary has no timeline: overlap, idle time and the step are unknown."),
    NoteCode.NO_TIMES: _("An execution trace has no timing; add the Kineto trace of the same run."),
    NoteCode.COARSE_SAMPLES: _("Samples of whole devices: no kernels and no steps, so the label is coarse."),
    NoteCode.COUNTERS_NOT_MEASURED: _(
        "The activity counters of %(names)s read 0 while the device was busy: they were not measured, which happens "
        "when another profiler holds them, and count as unknown."
    ),
    NoteCode.SAMPLES_IMPOSSIBLE: _("%(count)s sample(s) are beyond what any device can reach and count as unknown."),
    NoteCode.MACHINE_ONLY: _("This tells of the machine and not of the job; add a trace of the job."),
    NoteCode.ENVIRONMENT_NOT_READ: _("The file contains environment variables; they were not read."),
    NoteCode.EVENTS_DROPPED: _("Events were dropped by the profiler; the figures are lower bounds."),
    NoteCode.VALUES_MISSING: _("%(count)s value(s) are missing in the file and count as unknown."),
    NoteCode.IMPOSSIBLE_BANDWIDTHS: _(
        "%(count)s measurement(s) show a bandwidth that cannot be true and count as unknown."
    ),
    NoteCode.WRONG_RESULTS: _("The test found %(count)s wrong value(s): the hardware or its links corrupt data."),
    NoteCode.CALL_TIMES_ONLY: _(
        "NCCL's profiler plugin records when collectives were called; how long their transfers took is unknown."
    ),
    NoteCode.TIMED_ON_HOST: _("%(count)s time(s) were taken on the host and not on the GPU; they count as unknown."),
    NoteCode.GPUDIRECT_MISSING: _(
        "GPUDirect missing on %(pairs)s (%(count)s pair(s) of ranks): their data passes through host memory."
    ),
    NoteCode.NO_PEER_ACCESS: _(
        "No peer access on %(pairs)s (%(count)s pair(s) of ranks in one node): NCCL copies through host memory (SHM)."
    ),
    NoteCode.TOO_FEW_VALUES: _(
        "%(count)s row(s) have fewer values than the header has titles; the last ones were matched to the last titles."
    ),
    NoteCode.COPIES_ONLY: _(
        "Only copies were traced: what kernels did is unknown. Add the kernel trace of the same run."
    ),
    NoteCode.GRAPHS_WHOLE: _(
        "%(count)s CUDA graph launch(es) were traced as a whole; what ran inside is unknown. "
        "Capture with --cuda-graph-trace=node."
    ),
    NoteCode.GRAPHS_UNDER_RECORDED: _(
        "Only %(seen)s of %(count)s CUDA graph launches have kernels in the capture; idle time is unknown."
    ),
    NoteCode.KERNELS_MISSING: _(
        "Only %(seen)s of %(count)s kernel launches have kernels in the capture; idle time is unknown."
    ),
    NoteCode.OCCUPANCY_UNKNOWN: _("Occupancy unknown for %(count)s kernel(s)."),
    NoteCode.STEPS_FROM_RANGES: _("Steps are taken from %(count)s repeated ranges named “%(name)s”."),
    NoteCode.EVENTS_CAPPED: _(
        "The file has as many events as its exporter writes at most (%(limit)s): what came later is missing."
    ),
    NoteCode.COMMAND_BUFFERS_WHOLE: _(
        "%(count)s XLA command buffer(s) (CUDA graphs) were traced as a whole; what ran inside is unknown. "
        "Record with XLA_FLAGS=--xla_gpu_enable_command_buffer= (empty)."
    ),
    NoteCode.COMMAND_BUFFERS: _(
        "%(count)s XLA command buffer(s) (CUDA graphs) were launched: their kernels are counted, "
        "but belong to no XLA operation."
    ),
}

REFUSALS: Mapping[RefusalCode, Promise] = {
    RefusalCode.NO_FILE: _("No file was sent."),
    RefusalCode.TOO_MANY_FILES: _("%(count)s files were sent; the limit is %(limit)s."),
    RefusalCode.UPLOAD_TOO_LARGE: _("The upload has %(bytes)s bytes; the limit is %(limit)s."),
    RefusalCode.FILE_MISSING: _("There is no file “%(name)s”."),
    RefusalCode.FILE_UNREADABLE: _("%(name)s cannot be opened: %(reason)s."),
    RefusalCode.EMPTY_FILE: _("Empty file: it has 0 bytes."),
    RefusalCode.EMPTY_AFTER_DECOMPRESSION: _("The file is empty after decompression: its export failed."),
    RefusalCode.TOO_MANY_BLANKS: _("Blanks fill more than the first %(limit)s bytes of the file."),
    RefusalCode.FILE_TRUNCATED: _("The file is truncated: it ends before the first GPU work."),
    RefusalCode.TEXT_FILE: _("This is a text file that no reader knows. Accepted: %(accepted)s."),
    RefusalCode.UNKNOWN_BINARY: _(
        "This is another kind of file (%(kind)s, starts with %(head)s). Accepted: %(accepted)s."
    ),
    RefusalCode.NOT_READ_YET: _("This seems to be: %(kind)s, which is not read. Accepted: %(accepted)s."),
    RefusalCode.EXPORT_NEEDED: _(
        "A %(kind)s file is a binary report that only its own tool reads. Export it with “%(command)s”."
    ),
    RefusalCode.NESTED_COMPRESSION: _("Compression and archives are nested deeper than the limit of %(limit)s layers."),
    RefusalCode.DECOMPRESSION_RATIO: _(
        "Decompression stopped at %(seen)s:1 after %(bytes)s bytes; the limit is %(limit)s:1."
    ),
    RefusalCode.TOO_MANY_BYTES: _("The file is larger than %(limit)s bytes when unpacked."),
    RefusalCode.TOO_DEEP: _("The JSON is nested deeper than the limit of %(limit)s levels (at byte %(byte)s)."),
    RefusalCode.TOO_MANY_EVENTS: _("The trace has more than %(limit)s events."),
    RefusalCode.TOO_MANY_NAMES: _("The trace has more than %(limit)s different kernel names."),
    RefusalCode.TOO_MANY_DEVICES: _("The trace has more than %(limit)s devices or processes with GPU work."),
    RefusalCode.EVENT_TOO_LONG: _("One event is longer than the limit of %(limit)s bytes."),
    RefusalCode.TOO_SLOW: _("Reading took longer than %(limit)s s (%(done)s of %(total)s bytes read)."),
    RefusalCode.INVALID_JSON: _("This is not valid JSON (%(detail)s near byte %(byte)s)."),
    RefusalCode.TWO_DOCUMENTS: _(
        "This is not valid JSON: it looks like two traces written to one file; give each rank its own path."
    ),
    RefusalCode.NO_TRACE_EVENTS: _("There is no traceEvents list in this file (keys found: %(keys)s)."),
    RefusalCode.NO_EVENTS: _(
        "No events recorded: the profiler's schedule was never active, or step() was not called often enough."
    ),
    RefusalCode.ONLY_METADATA: _(
        "No events besides metadata: the profiler's schedule was never active, or step() was not called often enough."
    ),
    RefusalCode.NO_GPU_WORK: _(
        "GPU side not recorded (%(launches)s launches, %(kernels)s kernels): record with ProfilerActivity.CUDA."
    ),
    RefusalCode.NOT_A_GPU_TRACE: _("The trace has %(events)s events but none of a GPU profiler."),
    RefusalCode.NOTHING_INSIDE: _("There are no files inside."),
    RefusalCode.READING_OUTDATED: _("The service was renewed while this capture was read. Upload it again."),
    RefusalCode.NO_TRACE_IN_FOLDER: _("None of the %(count)s files can be read. Accepted: %(accepted)s."),
    RefusalCode.LINE_TOO_LONG: _("A line of the file is longer than the limit of %(limit)s characters."),
    RefusalCode.DATABASE_DAMAGED: _("The SQLite file is damaged or is not what it seems; export it again."),
    RefusalCode.CUDA_NOT_TRACED: _("CUDA kernels were not traced: capture with nsys profile --trace=cuda,nvtx."),
    RefusalCode.NO_COUNTERS: _(
        "Nsight Compute had no permission to read the performance counters of the GPU (ERR_NVGPUCTRPERM): "
        "nothing was measured."
    ),
    RefusalCode.NO_DISPATCHES: _(
        "No kernel dispatches recorded: the wrong process was traced, or permission for the GPU was missing."
    ),
    RefusalCode.PART_OF_RUN: _(
        "This holds only a part of a run (%(kind)s); upload it together with the kernel trace of the same run."
    ),
    RefusalCode.NO_ROWS: _("This seems to be: %(kind)s, but it holds no usable rows."),
    RefusalCode.PROTOBUF_DAMAGED: _("The binary trace is damaged: its fields do not add up; copy or export it again."),
    RefusalCode.BINARY_AS_TEXT: _(
        "The file was converted as text on its way here, which a binary trace does not survive; copy it as binary."
    ),
    RefusalCode.NO_STREAM_ROWS: _(
        "The profile has no work of a GPU: the job ran on the CPU, or the GPU profiler could not start."
    ),
    RefusalCode.TPU_PROFILE: _("This is a profile of TPUs; only the work of GPUs is read."),
    RefusalCode.TOOL_SUMMARY: _(
        "This is a page of the TensorFlow profiler and not a trace; upload the .xplane.pb file of the same run."
    ),
    RefusalCode.ARCHIVE_DAMAGED: _("The archive is damaged and cannot be unpacked."),
    RefusalCode.ARCHIVE_ENCRYPTED: _("The archive is encrypted; upload it without a password."),
    RefusalCode.ARCHIVE_METHOD: _("The file is packed by a method that is not read; pack it with deflate or zstd."),
    RefusalCode.WINDOW_TOO_LARGE: _(
        "Unpacking needs more memory than the limit of %(limit)s bytes; compress the file with usual settings."
    ),
    RefusalCode.TOO_MANY_MEMBERS: _("The archive holds more than %(limit)s files."),
    RefusalCode.COLUMNS_UNNAMED: _(
        "The table has no titles, so its columns cannot be told apart; query again without “noheader”."
    ),
    RefusalCode.TOO_MANY_ROWS: _("The table has more than the limit of %(limit)s rows."),
}


ACCEPTED = _("PyTorch, JAX and rocprof traces, nsys SQLite and CSV, ncu CSV, NCCL, DCGM and nvidia-smi output")

_IGNORED: Mapping[RefusalCode, Promise] = {
    RefusalCode.TEXT_FILE: _("text and no profile."),
    RefusalCode.UNKNOWN_BINARY: _("another kind of file (%(kind)s)."),
    RefusalCode.NO_TRACE_EVENTS: _("JSON without events of a profiler."),
}
"""Short for what lies beside captures everywhere; any other file that is ignored is told by its refusal."""


def sentence(item: Note | Refusal) -> str:
    """The sentence for a note or a refusal in the language that is active now."""
    params = in_words(item.params)
    return with_file(str(_template(item)) % params, params)


def in_words(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as sentences name them: what is a code or a kind of file is said in the language that is active now.

    Raises KeyError where a refusal among them lacks what its sentence names.
    """
    params = {**given, "accepted": ACCEPTED}
    if "kind" in params:
        params["kind"] = gettext(str(params["kind"]))
    if "resource" in params:
        params["resource"] = str(RESOURCES.get(str(params["resource"]), params["resource"]))
    if "why" in params:
        code = RefusalCode(params["why"])
        params["why"] = str(_IGNORED.get(code, REFUSALS[code])) % params
    return params


def with_file(text: str, params: Mapping[str, Any]) -> str:
    """The sentence, led by the file that it is about where the parameters name one."""
    if "file" in params:
        return gettext("%(file)s: %(sentence)s") % {"file": params["file"], "sentence": text}
    return text


def _template(item: Note | Refusal) -> Promise:
    if isinstance(item, Refusal):
        return REFUSALS[item.code]
    return FINDINGS[item.code] if isinstance(item.code, BottleneckCode) else NOTES[item.code]
