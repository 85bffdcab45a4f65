"""Files that are no capture, or are made to harm: one clear sentence, in bounded memory."""

import errno
import gzip
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.generate import CaptureSpec, Collective, Kernel, document, write
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from profiling.reading import NamedFile

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SPEC = CaptureSpec(
    work=(Kernel(name="ampere_sgemm_128x64_tn", duration_ns=100_000), Kernel(name="softmax", duration_ns=50_000)),
    collectives=(
        Collective(name="allreduce", kernel_name=NCCL, duration_ns=60_000, elements=1000, dtype="BFloat16", after=0),
    ),
    steps=3,
    pause_ns=20_000,
    world_size=2,
)
TRACE = json.dumps(document(SPEC)).encode()


def _file(folder: Path, content: bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _refusal(path: Path, limits: Limits | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(path, limits)
    text = sentence(caught.value)
    assert text.endswith((".", "."))
    assert "Traceback" not in text
    assert len(text) <= 200
    return caught.value


def _one(category: str) -> bytes:
    return b'{"traceEvents":[{"ph":"X","cat":"%s","name":"a","ts":1,"dur":1}]}' % category.encode()


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", RefusalCode.EMPTY_FILE, "0 bytes"),
        (gzip.compress(b""), RefusalCode.EMPTY_AFTER_DECOMPRESSION, "empty after decompression"),
        (b"  \n\n ", RefusalCode.EMPTY_AFTER_DECOMPRESSION, "empty"),
        (gzip.compress(TRACE)[:60], RefusalCode.FILE_TRUNCATED, "truncated"),
        (b"Step 1 loss 0.5\nStep 2 loss 0.4\n", RefusalCode.TEXT_FILE, "text file"),
        (b"<html><body>not found</body></html>", RefusalCode.TEXT_FILE, "text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), RefusalCode.UNKNOWN_BINARY, "PNG image"),
        (b"%PDF-1.7\n", RefusalCode.UNKNOWN_BINARY, "PDF document"),
        (b"\x7fELF" + bytes(64), RefusalCode.UNKNOWN_BINARY, "program"),
        (b"\x80\x04\x95\x00", RefusalCode.UNKNOWN_BINARY, "Python pickle"),
        (bytes(range(256)) * 8, RefusalCode.UNKNOWN_BINARY, "another kind of file"),
        (b'{"traceEvents":[]}', RefusalCode.NO_EVENTS, "No events recorded"),
        (b'{"traceEvents":[{"ph":"M","name":"process_name"}]}', RefusalCode.ONLY_METADATA, "besides metadata"),
        (_one("toplevel"), RefusalCode.NOT_A_GPU_TRACE, "1 events"),
        (_one("cpu_op"), RefusalCode.NO_GPU_WORK, "0 launches"),
        (b'{"a\\u202eb":1}', RefusalCode.NO_TRACE_EVENTS, "a<U+202E>b"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_no_capture_is_named(tmp_path: Path, content: bytes, code: RefusalCode, says: str) -> None:
    refusal = _refusal(_file(tmp_path, content))
    assert refusal.code == code
    assert says in sentence(refusal)


KERNEL = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}'
HOST = b'{"ph":"X","cat":"cpu_op","name":"k","pid":0,"tid":7,"ts":1,"dur":2}'


@pytest.mark.parametrize(
    "events",
    [
        KERNEL + b"},{}]}",
        b"]," + KERNEL + b"," + KERNEL + b"]}",
        b",".join([HOST] * 30) + b"," + KERNEL + b"},{}]}",
        b",".join([HOST] * 30) + b"]," + KERNEL + b"]}",
        b'{"ph":"M","name":"process_name"},' + KERNEL + b"},{}]}",
    ],
    ids=["brace", "bracket", "behind host events", "bracket behind host events", "behind names"],
)
def test_damage_that_takes_all_gpu_work_is_called_damage(tmp_path: Path, events: bytes) -> None:
    assert _refusal(_file(tmp_path, b'{"traceEvents":[' + events)).code == RefusalCode.INVALID_JSON


def test_text_behind_the_document_is_a_warning_and_lost_events_make_a_salvage(tmp_path: Path) -> None:
    told = analyse([_file(tmp_path, TRACE + b" garbage")])
    assert (told.outcome, NoteCode.TEXT_AFTER_END in [note.code for note in told.notes]) == (Outcome.WARN, True)
    half = b'{"traceEvents":[' + KERNEL + b"]," + KERNEL + b"]}"
    assert analyse([_file(tmp_path, half)]).outcome == Outcome.SALVAGE


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path = _file(tmp_path, TRACE)
    monkeypatch.setattr(Path, "open", refuse)
    refusal = _refusal(path)
    assert refusal.code == RefusalCode.FILE_UNREADABLE
    assert sentence(refusal) == "trace.json cannot be opened: Permission denied."


@pytest.mark.parametrize("name", ["report.nsys-rep", "old.qdrep", "kernel.ncu-rep"])
def test_binary_reports_name_their_export(tmp_path: Path, name: str) -> None:
    refusal = _refusal(_file(tmp_path, bytes(range(256)), name))
    assert refusal.code == RefusalCode.EXPORT_NEEDED


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "nothing.json").code == RefusalCode.FILE_MISSING


def test_a_decompression_bomb_stops_early_and_names_the_limit(tmp_path: Path) -> None:
    squeezer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(squeezer.compress(bytes(1 << 20)) for _ in range(256)) + squeezer.flush()
    path = _file(tmp_path, bomb, "bomb.json.gz")
    tracemalloc.start()
    refusal = _refusal(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refusal.code == RefusalCode.DECOMPRESSION_RATIO
    assert refusal.params["limit"] == 200
    assert int(refusal.params["bytes"]) <= 18 << 20
    assert peak < 100 << 20


def test_a_nesting_bomb_costs_no_memory(tmp_path: Path) -> None:
    path = _file(tmp_path, b"[" * 5_000_000)
    tracemalloc.start()
    refusal = _refusal(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refusal.code == RefusalCode.TOO_DEEP
    assert refusal.params["limit"] == 64
    assert peak < 8 << 20


def test_memory_does_not_grow_with_host_events(tmp_path: Path) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2,"args":{"Input Dims":[[4096,4096]]}},\n'
    text = TRACE.replace(b'"traceEvents": [', b'"traceEvents": [' + event * 200_000, 1)
    path = _file(tmp_path, text)
    tracemalloc.start()
    capture = read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert capture.timelines[0].host.operators == 200_000 + 9
    assert peak < len(text) // 2


def test_limits_are_named(tmp_path: Path) -> None:
    path = _file(tmp_path, TRACE)
    assert _refusal(path, Limits(events=5)).params["limit"] == 5
    assert _refusal(path, Limits(bytes_out=1000)).params["limit"] == 1000


def test_time_is_the_callers(tmp_path: Path) -> None:
    ticks = iter(range(100))
    with pytest.raises(Refusal) as caught:
        read(_file(tmp_path, TRACE), Limits(seconds=0.5), clock=lambda: float(next(ticks)))
    assert caught.value.code == RefusalCode.TOO_SLOW


def test_progress_is_told_in_stored_bytes(tmp_path: Path) -> None:
    files = [_file(tmp_path, TRACE, f"{name}.json") for name in ("one", "two")]
    told: list[tuple[int, int]] = []
    analyse(files, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2 * len(TRACE), 2 * len(TRACE))
    assert told == sorted(told)


def test_gzip_members_are_joined(tmp_path: Path) -> None:
    half = len(TRACE) // 2
    path = _file(tmp_path, gzip.compress(TRACE[:half]) + gzip.compress(TRACE[half:]), "two.json.gz")
    capture = read(path)
    assert capture.timelines[0].start_ns.size == 9
    assert capture.notes == ()


def test_a_byte_order_mark_or_utf_16_is_no_obstacle(tmp_path: Path) -> None:
    assert read(_file(tmp_path, b"\xef\xbb\xbf" + TRACE)).timelines[0].start_ns.size == 9
    wide = read(_file(tmp_path, TRACE.decode().encode("utf-16"), "wide.json"))
    assert [note.code for note in wide.notes] == [NoteCode.ENCODING_CONVERTED]
    assert wide.timelines[0].start_ns.size == 9


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("share", [0.8, 0.9, 0.999])
def test_a_cut_file_is_salvaged_and_says_so(tmp_path: Path, share: float, compressed: bool) -> None:
    content = gzip.compress(TRACE, mtime=0) if compressed else TRACE
    path = _file(tmp_path, content[: int(share * len(content))], "cut.json.gz" if compressed else "cut.json")
    analysis = analyse([path])
    assert analysis.outcome == Outcome.SALVAGE
    assert NoteCode.FILE_TRUNCATED in [note.code for note in analysis.notes]


def test_a_folder_is_one_job_and_by_products_are_listed(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(
            CaptureSpec(work=SPEC.work, collectives=SPEC.collectives, rank=rank, world_size=2),
            tmp_path / f"r{rank}.json",
        )
    _file(tmp_path, b'{"a":1}', "config.json")
    _file(tmp_path, b"read me\n", "README.md")
    analysis = analyse([tmp_path])
    assert [part.rank for part in analysis.breakdowns] == [0, 1]
    told = [sentence(note) for note in analysis.notes if note.code == NoteCode.FILES_IGNORED]
    assert told == [
        "Ignored README.md: text and no profile.",
        "Ignored config.json: JSON without events of a profiler.",
    ]


def test_of_several_named_files_the_bad_one_is_named(tmp_path: Path) -> None:
    good, bad = _file(tmp_path, TRACE, "good.json"), _file(tmp_path, b"", "stored-under-another-name")
    with pytest.raises(Refusal) as caught:
        analyse([good, NamedFile(bad, "rank7.json")])
    assert sentence(caught.value) == "rank7.json: Empty file: it has 0 bytes."


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    spec = CaptureSpec(work=(Kernel(name="</script><img src=x onerror=alert(1)>\x00", duration_ns=1000),), steps=1)
    path = tmp_path / "hostile.json"
    write(spec, path)
    (line,) = read(path).timelines
    assert line.names == ("</script><img src=x onerror=alert(1)>",)


@given(data=st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_ends_in_an_answer_or_a_refusal(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(TRACE)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 40))
        content[at : at + length] = data.draw(st.binary(max_size=12))
    path = _file(tmp_path, bytes(content))
    try:
        analysis = analyse([path])
    except Refusal as refusal:
        assert sentence(refusal)
        return
    for part in analysis.breakdowns:
        assert part.gpu_busy_ns + part.idle_ns == part.window_ns
    assert all(sentence(note) for note in analysis.notes)
