"""The commands `analyze` and `generate_trace`: one JSON document on stdout, notes on stderr, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import translation

from profiling.bottleneck_messages import RESOURCES
from profiling.bottleneck_text import SURENESS, sureness_of
from profiling.messages import NOTES, REFUSALS
from profiling.notes import NoteCode, RefusalCode

RANK_FIELDS = {
    "rank", "device_index", "world_size", "device", "window_us", "gpu_busy_us", "compute_us", "comm_us",
    "exposed_comm_us", "copy_us", "idle_us", "kernels", "waiting_us",
}  # fmt: skip


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "sample.json.gz"
    call_command("generate_trace", path, "--steps", "2")
    return path


def _answer(output: str) -> dict[str, Any]:
    return json.loads(output, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_json_has_the_promised_fields(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("analyze", capture, "--json")
    output = capsys.readouterr()
    document = _answer(output.out)
    assert {"format", "outcome", "notes", "ranks", "bottleneck"} <= document.keys()
    assert {"label", "probabilities", "evidence"} <= document["bottleneck"].keys()
    assert all(part.keys() >= RANK_FIELDS for part in document["ranks"])
    assert len(document["ranks"]) == 1
    assert document["format"] == "kineto"
    assert document["outcome"] == "ok"
    assert document["step"]["observed"] == 2
    assert [note["sentence"] for note in document["notes"]] == output.err.strip().splitlines()


def test_without_json_there_is_a_table(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("analyze", capture)
    assert "NVIDIA A100-SXM4-80GB" in capsys.readouterr().out


def test_the_label_stands_under_the_table_with_how_sure_it_is(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("analyze", capture, "--json")
    found = _answer(capsys.readouterr().out)["bottleneck"]
    call_command("analyze", capture)
    lines = capsys.readouterr().out.splitlines()
    under = lines[lines.index("") + 1 :]
    word = SURENESS[sureness_of(found) or ""]
    name = RESOURCES[found["label"]] if found["label"] else None
    assert under[0] == (f"Bound by: {name}; {word}" if name else f"Bound by: {word}")
    assert under[1:] == [note["sentence"] for note in found["evidence"]]


def test_bad_input_ends_with_2_and_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing to see here\n")
    with pytest.raises(SystemExit) as caught:
        call_command("analyze", path, "--json")
    output = capsys.readouterr()
    document = _answer(output.out)
    assert caught.value.code == 2
    assert document["outcome"] == "error"
    assert document["ranks"] == []
    assert document["bottleneck"]["label"] is None
    assert output.err.strip() == document["error"]["sentence"]
    assert len(output.err.strip().splitlines()) == 1


def test_a_path_that_the_system_refuses_ends_with_2_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call_command("analyze", Path("a" * 300), "--json")
    output = capsys.readouterr()
    assert caught.value.code == 2
    assert _answer(output.out)["error"]["code"] == "file_unreadable"
    assert output.err.strip().endswith("cannot be opened: File name too long.")


def test_all_ranks_make_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("generate_trace", tmp_path / "job", "--all-ranks", "--world-size", "2", "--steps", "1")
    call_command("analyze", tmp_path / "job", "--json")
    assert [part["rank"] for part in _answer(capsys.readouterr().out)["ranks"]] == [0, 1]


def test_a_capture_of_no_steps_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        call_command("generate_trace", tmp_path / "none.json", "--steps", "0")


def test_every_code_has_a_sentence() -> None:
    assert NOTES.keys() == set(NoteCode)
    assert REFUSALS.keys() == set(RefusalCode)
    with translation.override("en"):
        assert all(str(text) for text in (*NOTES.values(), *REFUSALS.values()))
