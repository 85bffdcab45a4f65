"""The sentence that belongs to a code, translatable. Parameters are named; what a capture contains is quoted short."""

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from profiling.bottleneck_messages import FINDINGS
from profiling.notes import BottleneckCode, Note, NoteCode, Refusal, RefusalCode

NOTES: Mapping[NoteCode, Promise] = {
    NoteCode.BYTES_AFTER_GZIP: _("Bytes after the gzip stream were ignored."),
    NoteCode.FILE_TRUNCATED: _("The file is truncated: only the %(events)s events before the cut are counted."),
    NoteCode.GZIP_DAMAGED: _("The gzip stream is damaged: only the %(events)s events before the damage are counted."),
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
    NoteCode.FILES_IGNORED: _("Ignored %(count)s file(s) that are no captures: %(names)s."),
    NoteCode.NO_STEP_MARKERS: _("No step markers in the capture: the whole window is taken as one step."),
    NoteCode.UNMARKED_REPETITION: _(
        "No step markers, but the same kernels repeat %(count)s times: the window seems to hold %(count)s steps."
    ),
    NoteCode.FIRST_STEP_EXCLUDED: _("First step excluded as an outlier (%(ratio)sx the others)."),
    NoteCode.COMMUNICATION_UNVERIFIED: _(
        "One rank cannot tell waiting from transfer: upload all ranks to verify what communication costs."
    ),
    NoteCode.COLLECTIVES_NOT_ALIGNED: _(
        "The ranks ran different collectives, so waiting could not be told from transfer."
    ),
    NoteCode.WAITING_FOR_STRAGGLERS: _(
        "%(percent)s%% of the communication time is waiting: rank(s) %(ranks)s come %(late_ms)s ms late each time."
    ),
    NoteCode.PRECISION_ASSUMED: _("No kernel name tells the number format; %(precision)s is assumed."),
    NoteCode.BATCH_UNKNOWN: _("The capture does not tell the batch size; results are per step."),
    NoteCode.DEVICE_UNKNOWN: _("The capture does not name the GPU."),
    NoteCode.NO_TIMELINE: _("A summary has no timeline: overlap, idle time and the step are unknown."),
    NoteCode.NO_TIMES: _("An execution trace has no timing; add the Kineto trace of the same run."),
    NoteCode.COARSE_SAMPLES: _("Samples of whole devices: no kernels and no steps, so the label is coarse."),
    NoteCode.MACHINE_ONLY: _("This tells of the machine and not of the job; add a trace of the job."),
    NoteCode.ENVIRONMENT_NOT_READ: _("The file contains environment variables; they were not read."),
    NoteCode.EVENTS_DROPPED: _("Events were dropped by the profiler; the figures are lower bounds."),
    NoteCode.VALUES_MISSING: _("%(count)s value(s) are missing in the file and count as unknown."),
    NoteCode.GRAPHS_WHOLE: _(
        "%(count)s CUDA graph launch(es) were traced as a whole; what ran inside is unknown. "
        "Capture with --cuda-graph-trace=node."
    ),
    NoteCode.GRAPHS_UNDER_RECORDED: _(
        "Only %(seen)s of %(count)s CUDA graph launches have kernels in the capture; idle time is unknown."
    ),
    NoteCode.STEPS_FROM_RANGES: _("Steps are taken from %(count)s repeated ranges named “%(name)s”."),
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
    RefusalCode.TEXT_FILE: _("This is a text file and not a profiler trace; a Kineto JSON trace is accepted."),
    RefusalCode.UNKNOWN_BINARY: _(
        "This seems to be another kind of file (%(kind)s, starts with %(head)s); a Kineto JSON trace is accepted."
    ),
    RefusalCode.NOT_READ_YET: _("This seems to be: %(kind)s, which is not read yet; export a Kineto JSON trace."),
    RefusalCode.EXPORT_NEEDED: _(
        "A %(kind)s file is a binary report (export it with: %(command)s), and its exports are not read yet; "
        "export a Kineto JSON trace."
    ),
    RefusalCode.NESTED_COMPRESSION: _("The file is compressed more than once; %(limit)s layer is allowed."),
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
    RefusalCode.NO_TRACE_IN_FOLDER: _("None of the %(count)s files is a trace that can be read."),
    RefusalCode.LINE_TOO_LONG: _("A line of the file is longer than the limit of %(limit)s characters."),
    RefusalCode.DATABASE_DAMAGED: _("The SQLite file is damaged or is not what it seems; export it again."),
    RefusalCode.CUDA_NOT_TRACED: _("CUDA kernels were not traced: capture with nsys profile --trace=cuda,nvtx."),
    RefusalCode.NO_DISPATCHES: _(
        "No kernel dispatches recorded: the wrong process was traced, or permission for the GPU was missing."
    ),
    RefusalCode.NO_ROWS: _("This seems to be: %(kind)s, but it holds no usable rows."),
    RefusalCode.ARCHIVE_DAMAGED: _("The archive is damaged and cannot be unpacked."),
    RefusalCode.ARCHIVE_ENCRYPTED: _("The archive is encrypted; upload it without a password."),
    RefusalCode.TOO_MANY_MEMBERS: _("The archive holds more than %(limit)s files."),
    RefusalCode.TOO_MANY_ROWS: _("The table has more than the limit of %(limit)s rows."),
}


def sentence(item: Note | Refusal) -> str:
    """The sentence for a note or a refusal in the language that is active now."""
    params = dict(item.params)
    if "kind" in params:
        params["kind"] = gettext(str(params["kind"]))
    return with_file(str(_template(item)) % params, params)


def with_file(text: str, params: Mapping[str, Any]) -> str:
    """The sentence, led by the file that it is about where the parameters name one."""
    if "file" in params:
        return gettext("%(file)s: %(sentence)s") % {"file": params["file"], "sentence": text}
    return text


def _template(item: Note | Refusal) -> Promise:
    if isinstance(item, Refusal):
        return REFUSALS[item.code]
    return FINDINGS[item.code] if isinstance(item.code, BottleneckCode) else NOTES[item.code]
