"""One entry per error code of pages, API and runs: cause, fix, and whether trying again helps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from advisor.engine.explain import EngineCode
from profiling.notes import RefusalCode
from profiling.workload_json import WorkloadCode

Text = str | Promise

LATER = _("Yes, after a while.")
CHANGED = _("Only with a changed request.")
OTHER_FILE = _("Only with another file.")
SAME = _("Yes; it costs nothing.")

_RECORD = _("Record three to five steps with the recipe beside the upload form and let the export finish.")
_KINETO = _('Export a Kineto trace: profiler.export_chrome_trace("trace.json.gz").')
_SMALLER = _("Record fewer steps, or without stacks and memory events.")


@dataclass(frozen=True, slots=True)
class Problem:
    """``retry``: whether the same request may succeed later."""

    code: str
    cause: Text
    fix: Text
    retry: Text


@dataclass(frozen=True, slots=True)
class Section:
    title: Text
    problems: Sequence[Problem]


_REQUESTS: Mapping[str, tuple[Text, Text, Text]] = {
    "invalid": (_("One or more values cannot be accepted."), _("Each entry of “errors” points at one value."), CHANGED),
    "bad_request": (_("The request could not be read."), _("Check the syntax and the Content-Type."), CHANGED),
    "unauthenticated": (
        _("No API key was sent, or it is unknown, revoked or expired."),
        _("Send the header “Authorization: Api-Key …”; an administrator makes keys."),
        CHANGED,
    ),
    "forbidden": (_("This key or user may not do this."), _("Use one that may."), CHANGED),
    "csrf": (
        _("The page was open for too long, or cookies are off."),
        _("Reload the page and send the form again."),
        SAME,
    ),
    "not_found": (
        _("There is nothing at this address, or it belongs to somebody else."),
        _("Check the address. Studies are seen only by the browser, user or key that made them."),
        CHANGED,
    ),
    "method_not_allowed": (
        _("This address does not know the method."),
        _("The Allow header names those it knows."),
        CHANGED,
    ),
    "not_acceptable": (
        _("The answer is not available in the format asked for."),
        _("Ask for application/json."),
        CHANGED,
    ),
    "conflict": (_("The state of the resource does not allow this now."), _("Read it again and decide anew."), LATER),
    "precondition_failed": (
        _("Somebody has changed the row since you read it, or it is already there, or gone."),
        _("Read it again, look at what has changed, and send your change with the new ETag as If-Match."),
        CHANGED,
    ),
    "precondition_required": (
        _("A row of the catalog is changed only by those who say which state of it they read."),
        _("Send the row's ETag as If-Match; to add a row by PUT, send If-None-Match: *."),
        CHANGED,
    ),
    "length_required": (
        _("The body came without its length."),
        _("Send a Content-Length header instead of a chunked body."),
        CHANGED,
    ),
    "body_too_large": (_("The body is larger than is accepted."), _("Send less, or fewer files at once."), CHANGED),
    "media_type": (
        _("The body has a type that this address does not read."),
        _("Send JSON, or multipart for files."),
        CHANGED,
    ),
    "unprocessable": (
        _("The request was read, but its values do not go together."),
        _("The detail says which."),
        CHANGED,
    ),
    "rate_limited": (_("Too many requests with this key."), _("Wait as long as the Retry-After header says."), LATER),
    "internal_error": (
        _("Something broke on our side; what was stored is safe."),
        _("Try again; if it stays, tell us the time and the address."),
        SAME,
    ),
    "error": (_("The request failed for a reason without a code of its own."), _("The detail says why."), CHANGED),
}

_RUNS: Mapping[str, tuple[Text, Text, Text]] = {
    "time_limit": (_("Working on the capture took longer than one job may."), _SMALLER, OTHER_FILE),
    "memory_limit": (_("Working on the capture needed more memory than one job may use."), _SMALLER, OTHER_FILE),
    "worker_lost": (
        _("The worker was lost three times while it worked on this. The fault is ours."),
        _("Tell us, and try once more."),
        SAME,
    ),
}

_CAPTURES: Mapping[RefusalCode, tuple[Text, Text, Text]] = {
    RefusalCode.NO_FILE: (_("The upload had no file."), _("Choose at least one file."), CHANGED),
    RefusalCode.TOO_MANY_FILES: (_("More files than one study takes."), _("Send some of the ranks only."), CHANGED),
    RefusalCode.UPLOAD_TOO_LARGE: (_("The files together are too large."), _SMALLER, CHANGED),
    RefusalCode.FILE_UNREADABLE: (
        _("The file is there, but the service may not read it."),
        _("Check the permissions of the file."),
        SAME,
    ),
    RefusalCode.FILE_MISSING: (_("There is no file at the path given."), _("Check the path."), CHANGED),
    RefusalCode.EMPTY_FILE: (
        _("The file has no bytes: the profiler or the transfer was cut off."),
        _RECORD,
        OTHER_FILE,
    ),
    RefusalCode.EMPTY_AFTER_DECOMPRESSION: (_("The gzip file holds nothing: the export failed."), _RECORD, OTHER_FILE),
    RefusalCode.FILE_TRUNCATED: (_("The file ends before its first complete event."), _RECORD, OTHER_FILE),
    RefusalCode.TEXT_FILE: (_("The file is text, for instance a log."), _KINETO, OTHER_FILE),
    RefusalCode.UNKNOWN_BINARY: (_("The file is of another kind, for instance a picture."), _KINETO, OTHER_FILE),
    RefusalCode.NOT_READ_YET: (_("A known kind of file that is not read."), _KINETO, OTHER_FILE),
    RefusalCode.EXPORT_NEEDED: (
        _("A profiler's own binary report."),
        _("Export it with the command in the message."),
        OTHER_FILE,
    ),
    RefusalCode.NESTED_COMPRESSION: (
        _("Compression and archives lie in one another, too many of them."),
        _("Unpack the file and send it again."),
        CHANGED,
    ),
    RefusalCode.DECOMPRESSION_RATIO: (
        _("The file unpacks to far more than a capture would; reading was stopped."),
        _("Record it again; if it is a real capture, send it unpacked."),
        OTHER_FILE,
    ),
    RefusalCode.TOO_MANY_BYTES: (_("The file is too large when unpacked."), _SMALLER, OTHER_FILE),
    RefusalCode.TOO_DEEP: (_("Brackets are nested deeper than any profiler writes."), _KINETO, OTHER_FILE),
    RefusalCode.TOO_MANY_NAMES: (_("More different kernel names than any program has."), _SMALLER, OTHER_FILE),
    RefusalCode.TOO_MANY_DEVICES: (_("More devices than one capture can hold."), _SMALLER, OTHER_FILE),
    RefusalCode.TOO_MANY_BLANKS: (_("Blanks stand where the trace should begin."), _KINETO, OTHER_FILE),
    RefusalCode.TOO_MANY_EVENTS: (_("More events than one job may read."), _SMALLER, OTHER_FILE),
    RefusalCode.EVENT_TOO_LONG: (_("One event is longer than any profiler writes."), _KINETO, OTHER_FILE),
    RefusalCode.TOO_SLOW: (_("Reading took too long and was stopped."), _SMALLER, OTHER_FILE),
    RefusalCode.INVALID_JSON: (_("The file is damaged or not JSON at all."), _RECORD, OTHER_FILE),
    RefusalCode.TWO_DOCUMENTS: (
        _("Two traces were written into one file, often by two ranks."),
        _("Give each rank its own file name."),
        OTHER_FILE,
    ),
    RefusalCode.NO_TRACE_EVENTS: (_("JSON, but not a trace: the list “traceEvents” is missing."), _KINETO, OTHER_FILE),
    RefusalCode.NO_EVENTS: (_("The profiler recorded nothing: its schedule was never active."), _RECORD, OTHER_FILE),
    RefusalCode.ONLY_METADATA: (_("The profiler recorded names but no events."), _RECORD, OTHER_FILE),
    RefusalCode.NO_GPU_WORK: (
        _("Only the host side was recorded."),
        _("Record with ProfilerActivity.CUDA, with the permission to use performance counters."),
        OTHER_FILE,
    ),
    RefusalCode.NOT_A_GPU_TRACE: (
        _("A trace of another program, without a GPU profiler's events."),
        _KINETO,
        OTHER_FILE,
    ),
    RefusalCode.LINE_TOO_LONG: (_("A line is longer than any tool writes."), _KINETO, OTHER_FILE),
    RefusalCode.DATABASE_DAMAGED: (
        _("The SQLite file is cut or damaged, or its tables are not what they seem."),
        _("Export the report again: nsys export --type sqlite FILE."),
        OTHER_FILE,
    ),
    RefusalCode.CUDA_NOT_TRACED: (
        _("The capture was made without tracing CUDA."),
        _("Capture with nsys profile --trace=cuda,nvtx."),
        OTHER_FILE,
    ),
    RefusalCode.NO_DISPATCHES: (
        _("The profiler saw no kernel: the wrong process, or no permission."),
        _("Trace the process that uses the GPU, with permission for its counters."),
        OTHER_FILE,
    ),
    RefusalCode.NO_COUNTERS: (
        _("The driver keeps performance counters from ordinary users."),
        _("Ask the owner of the machine to allow them, or run ncu as root, and record again."),
        OTHER_FILE,
    ),
    RefusalCode.PART_OF_RUN: (
        _("The profiler wrote one file per kind of record, and this one holds no work of a GPU."),
        _("Send all files of the run together, as a folder or an archive."),
        OTHER_FILE,
    ),
    RefusalCode.NO_ROWS: (_("A known kind of file without one usable row."), _RECORD, OTHER_FILE),
    RefusalCode.PROTOBUF_DAMAGED: (_("The binary trace was cut or changed."), _RECORD, OTHER_FILE),
    RefusalCode.BINARY_AS_TEXT: (
        _("A transfer or an editor took the binary file for text and replaced its bytes."),
        _("Copy the file as binary, or pack it into an archive first."),
        OTHER_FILE,
    ),
    RefusalCode.NO_STREAM_ROWS: (
        _("The profile of JAX or TensorFlow has no rows of GPU streams."),
        _("Check that jax.devices() lists GPUs and that the profiler is allowed to use them, and record again."),
        OTHER_FILE,
    ),
    RefusalCode.TPU_PROFILE: (_("The job ran on TPUs, which the catalog does not have."), _KINETO, OTHER_FILE),
    RefusalCode.TOOL_SUMMARY: (
        _("The profiler made this page of figures from a trace."),
        _("Upload the .xplane.pb or trace.json.gz file of the same folder."),
        OTHER_FILE,
    ),
    RefusalCode.ARCHIVE_DAMAGED: (_("The archive is cut or damaged."), _("Pack the files again."), OTHER_FILE),
    RefusalCode.ARCHIVE_ENCRYPTED: (_("The archive asks for a password."), _("Pack it without one."), OTHER_FILE),
    RefusalCode.ARCHIVE_METHOD: (
        _("A file in the archive is packed by a rare method."),
        _("Pack it with deflate or zstd."),
        CHANGED,
    ),
    RefusalCode.WINDOW_TOO_LARGE: (
        _("The file was compressed with a very large window."),
        _("Compress it without --ultra or --long."),
        CHANGED,
    ),
    RefusalCode.TOO_MANY_MEMBERS: (_("The archive holds too many files."), _("Pack the captures only."), OTHER_FILE),
    RefusalCode.COLUMNS_UNNAMED: (
        _("A table of figures without a line of titles."),
        _("Query again with --format=csv and without “noheader”."),
        OTHER_FILE,
    ),
    RefusalCode.TOO_MANY_ROWS: (_("The table is larger than any such report."), _SMALLER, OTHER_FILE),
    RefusalCode.NOTHING_INSIDE: (
        _("The archive or folder is empty, or holds hidden files alone."),
        _("Pack the captures themselves."),
        OTHER_FILE,
    ),
    RefusalCode.READING_OUTDATED: (
        _("Files were read by an earlier version of the service, and joined by a later one."),
        _("Upload the capture again."),
        SAME,
    ),
    RefusalCode.NO_TRACE_IN_FOLDER: (_("None of the files is a capture."), _KINETO, OTHER_FILE),
}

_WORKLOADS: Mapping[WorkloadCode, tuple[Text, Text]] = {
    WorkloadCode.NOT_AN_OBJECT: (_("An object is expected here."), _("Send a JSON object.")),
    WorkloadCode.NOT_A_LIST: (_("A list is expected here."), _("Send a JSON list.")),
    WorkloadCode.TOO_MANY_ITEMS: (_("The list is longer than is accepted."), _("Send fewer items.")),
    WorkloadCode.UNKNOWN_FIELD: (_("A field that the document does not have."), _("Remove it, or correct its name.")),
    WorkloadCode.MISSING_FIELD: (_("A field that is needed is missing."), _("Add it.")),
    WorkloadCode.NOT_TEXT: (_("Short printable text is expected here."), _("Send text without control characters.")),
    WorkloadCode.NOT_A_NUMBER: (_("A finite number is expected here."), _("Send a JSON number.")),
    WorkloadCode.NOT_A_WHOLE_NUMBER: (_("A whole number is expected here."), _("Send a JSON number without fraction.")),
    WorkloadCode.NOT_A_BOOLEAN: (_("True or false is expected here."), _("Send true or false.")),
    WorkloadCode.OUT_OF_RANGE: (_("The number cannot be true for a job."), _("The detail names the range.")),
    WorkloadCode.NOT_A_CHOICE: (_("None of the words that are allowed here."), _("The detail names them.")),
    WorkloadCode.NEEDS_MODEL_OR_MEASURED: (_("Neither a model nor a measured step."), _("Give at least one of them.")),
    WorkloadCode.NOT_DIVISIBLE: (_("One size must be a multiple of another."), _("Check heads and hidden size.")),
    WorkloadCode.MODEL_AND_TOTALS: (_("Both a model shape and a model's totals."), _("Give one of them.")),
    WorkloadCode.NEEDS_FIELD: (_("A field that means nothing without another."), _("Add the other, or remove it.")),
    WorkloadCode.NOT_IN_MODE: (_("A field that belongs to the other mode."), _("Remove it, or change the mode.")),
    WorkloadCode.EXCEEDS: (_("A part is larger than the whole."), _("The detail names both.")),
    WorkloadCode.NOT_JSON: (_("The model's configuration is not JSON."), _("Send the text of its config.json.")),
    WorkloadCode.TOO_LARGE: (_("More bytes than a config.json has."), _("Send the config.json alone.")),
    WorkloadCode.STATE_SPACE_MODEL: (
        _("Layers without attention take a time that we do not predict."),
        _("Record a profiler capture of the job."),
    ),
    WorkloadCode.ENCODER_DECODER_MODEL: (
        _("One shape does not describe an encoder with a decoder."),
        _("Choose a known model, or give the totals of one sample."),
    ),
    WorkloadCode.COMPRESSED_ATTENTION: (
        _("Compressed attention takes a time that we do not predict."),
        _("Record a profiler capture of the job."),
    ),
    WorkloadCode.NOT_A_TRANSFORMER: (
        _("The configuration lacks what every transformer has."),
        _("Send the config.json of the model itself."),
    ),
    WorkloadCode.PARTS_EXCEED_STEP: (_("The parts add up to more than the step."), _("Check the measured times.")),
}

_ANSWERS: Mapping[EngineCode, tuple[Text, Text]] = {
    EngineCode.NO_STEP_TIMES: (
        _("Sums, samples, logs and execution traces tell of a job but not how long its steps take."),
        _("Record a timeline with one of the recipes, or describe the job."),
    ),
    EngineCode.ACCELERATOR_UNKNOWN: (
        _("The capture was made on a GPU that the catalog does not know."),
        _("Name the accelerator in the request, or describe the job."),
    ),
    EngineCode.ACCELERATOR_UNNAMED: (
        _("The capture does not name the GPU that it was made on."),
        _("Name the accelerator in the request or the form, or describe the job."),
    ),
    EngineCode.NO_RATE_FOR_PRECISION: (
        _("The accelerator has no rate for this precision, or it is not known."),
        _("Choose another precision or accelerator."),
    ),
    EngineCode.ANCHOR_IMPOSSIBLE: (
        _("The measured step time cannot be that of this job."),
        _("Check its seconds, its batch and its number of GPUs, or leave the measurement out."),
    ),
    EngineCode.NETWORK_UNKNOWN: (
        _("The job takes several servers whose network is not known."),
        _("Choose no more GPUs than one server has, or a server whose network is stated."),
    ),
    EngineCode.NO_LEGAL_PLAN: (
        _("The job cannot be divided over this number of GPUs."),
        _("Choose another number of GPUs, or a larger batch."),
    ),
    EngineCode.NOTHING_FITS: (
        _("No way of dividing the job fits into the memory of these GPUs."),
        _("Choose more GPUs or larger ones."),
    ),
}


def problem_sections() -> list[Section]:
    """All codes by where they come from."""
    return [
        Section(_("Requests"), [Problem(code, *texts) for code, texts in _REQUESTS.items()]),
        Section(_("Captures"), [Problem(code, *texts) for code, texts in _CAPTURES.items()]),
        Section(_("Background work"), [Problem(code, *texts) for code, texts in _RUNS.items()]),
        Section(_("Workload documents"), [Problem(code, *texts, CHANGED) for code, texts in _WORKLOADS.items()]),
        Section(_("Predictions"), [Problem(code, *texts, CHANGED) for code, texts in _ANSWERS.items()]),
    ]
