"""The stable commands: one JSON document on stdout, exit code 2 and one sentence for bad input."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from advisor import services
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from advisor.models import Study
from advisor.wording import worded
from profiling.bottleneck_messages import RESOURCES
from profiling.generate import write
from profiling.sample_capture import sample_capture
from tests.paths import REPOSITORY
from tests.workers import answer as work_off

EXAMPLE = str(REPOSITORY / "docs" / "examples" / "llama-7b-training.json")


@pytest.fixture
def catalog(db: None) -> None:
    call_command("load_catalog", verbosity=0)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.json.gz"
    write(sample_capture(world_size=1), path)
    return path


def answer(*arguments: str) -> Any:
    out, err = StringIO(), StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=err)
    return json.loads(out.getvalue())


def printed(*arguments: str) -> list[str]:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue().splitlines()


def refused(*arguments: str) -> str:
    """The sentence of a command that ends with exit code 2 and prints no answer."""
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(*arguments, stdout=out, stderr=err)
    assert ended.value.code == 2
    assert out.getvalue() == ""
    return err.getvalue().strip()


def test_advise_on_a_capture_gives_the_numbers_of_the_study(catalog: None, capture: Path) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.utils import timezone

    printed = answer("advise", "--trace", str(capture), "--batch", "16", "--parameters", "2e8", "--limit", "100")
    study = services.create_capture_study(
        owner="test",
        title="same",
        files=[SimpleUploadedFile(capture.name, capture.read_bytes())],
        hints=CaptureHints(batch_per_step=16.0, parameters=2e8),
        goal=Goal(as_of=timezone.now().date()),
    )
    work_off(study.run)

    assert worded(Study.objects.get(pk=study.pk).result) == printed


def test_advise_says_the_verdict_and_a_line_per_offer(catalog: None) -> None:
    out = StringIO()
    encoder = str(REPOSITORY / "docs" / "examples" / "bert-large-finetuning.json")
    call_command("advise", "--workload", encoder, "--limit", "3", stdout=out, stderr=StringIO())

    lines = out.getvalue().splitlines()
    empty = lines.index("")
    assert "NVLink" in lines[0]
    assert any("use one GPU" in line for line in lines[1:empty])
    assert [line.split()[0] for line in lines[empty + 2 :]] == ["1", "2", "3"]


def test_advise_says_what_bounds_a_described_job_and_what_more_of_each_resource_gives(catalog: None) -> None:
    found = answer("advise", "--workload", EXAMPLE, "--gpus", "8", "--limit", "3")["bottleneck"]
    lines = printed("advise", "--workload", EXAMPLE, "--gpus", "8", "--limit", "3")
    said = f"Bound by: {RESOURCES[found['label']]} on the first offer ({found['server']}, GPUs used: 8)"
    place = lines.index(said)
    limits = lines[place + 1 + len(found["warnings"])]
    saved = round(100 * (1 - found["limits_s"]["compute"] / found["step_s"]))
    assert place < lines.index("")
    assert f"{RESOURCES['compute']} {saved}%" in limits


def test_advise_says_what_bounds_a_captured_job_and_what_its_replay_says(catalog: None, tmp_path: Path) -> None:
    for rank in range(2):
        write(sample_capture(rank=rank, world_size=2), tmp_path / f"rank{rank}.json")
    found = answer("advise", "--trace", str(tmp_path), "--batch", "32", "--limit", "3")["bottleneck"]
    lines = printed("advise", "--trace", str(tmp_path), "--batch", "32", "--limit", "3")
    assert found["replayed"]
    assert found["replayed"]["note"]["sentence"] in lines
    assert all(note["sentence"] in lines for note in found["evidence"])
    assert sum(line.startswith("Bound by: ") for line in lines) == 1


def test_advise_takes_an_accelerator_that_the_capture_does_not_name(catalog: None, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write(sample_capture(world_size=1), path)
    path.write_text(path.read_text().replace("NVIDIA A100-SXM4-80GB", "Graphics Device"))

    unknown = answer("advise", "--trace", str(path))
    known = answer("advise", "--trace", str(path), "--accelerator", "a100-sxm4-80")

    assert (unknown["offers"], unknown["verdict"]["outcome"]) == ([], "unknown")
    assert unknown["capture"]["ranks"]
    assert "accelerator_unknown" in {note["code"] for note in unknown["notes"]}
    assert known["workload"]["captured_on"] == "a100-sxm4-80"
    assert known["offers"]


def test_predict_gives_parts_that_add_up(catalog: None) -> None:
    found = answer("predict", "--workload", EXAMPLE, "--sku", "aws/p4de.24xlarge", "--gpus", "8")

    visible = {name: value for name, value in found["parts"].items() if name != "communication_hidden_s"}
    assert sum(visible.values()) == pytest.approx(found["step_s"])
    assert found["low_s"] < found["step_s"] < found["high_s"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workload", "missing.json"], "missing.json cannot be opened"),
        (["--workload", "requirements.in"], "requirements.in is not valid JSON"),
        (["--trace", "requirements.in"], "text"),
        (["--trace", "missing.json"], "missing.json"),
        (["--trace", "missing.json", "--accelerator", "nope"], "no accelerator nope"),
    ],
)
def test_advise_refuses_with_one_sentence(catalog: None, arguments: list[str], said: str) -> None:
    sentence = refused("advise", *arguments)

    assert said in sentence
    assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sku", "aws/none", "--gpus", "8"], "no server aws/none"),
        (["--sku", "aws/p4de.24xlarge", "--gpus", "67"], "cannot be divided"),
        (["--sku", "aws/p4de.24xlarge", "--gpus", "8", "--plan", "{"], "not valid JSON"),
        (["--sku", "aws/p4de.24xlarge", "--gpus", "8", "--plan", '{"dp": -1}'], "dp"),
        (["--sku", "aws/p4de.24xlarge", "--gpus", "8", "--plan", '{"dp": 8, "zero_stage": 4}'], "zero_stage"),
        (["--sku", "aws/p4de.24xlarge", "--gpus", "8", "--plan", '{"dp": 8, "captured": true}'], "cannot be divided"),
        (["--sku", "a\x1b[31mws/none", "--gpus", "8"], "no server a[31mws/none"),
    ],
)
def test_predict_refuses_with_one_sentence(catalog: None, arguments: list[str], said: str) -> None:
    assert said in refused("predict", "--workload", EXAMPLE, *arguments)


def test_a_negative_number_in_a_workload_is_named(catalog: None, tmp_path: Path) -> None:
    document = json.loads(Path(EXAMPLE).read_text())
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({**document, "batch_per_step": -4}))

    assert "batch_per_step" in refused("advise", "--workload", str(path))


def test_what_a_terminal_would_obey_is_not_printed(catalog: None, tmp_path: Path) -> None:
    document = json.loads(Path(EXAMPLE).read_text())
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({**document, "batch\x1b[2J\u202esize": 4}))

    assert "no field batch[2Jsize" in refused("advise", "--workload", str(path))


def test_a_new_key_works_and_is_not_stored(db: None) -> None:
    from rest_framework_api_key.models import APIKey

    out = StringIO()
    call_command("create_api_key", "sales", stdout=out, stderr=StringIO())
    key = out.getvalue().strip()

    assert APIKey.objects.is_valid(key)
    assert key not in str(APIKey.objects.values())


def test_unsafe_production_is_refused() -> None:
    command = [sys.executable, "manage.py", "check"]
    environment = {"ALLOWED_HOSTS": "advisor.example", "PATH": "/usr/bin:/bin"}

    run = subprocess.run(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True, check=False)

    assert run.returncode != 0
    assert "SECRET_KEY" in run.stderr


def test_production_settings_pass_djangos_own_checks(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = {
        "ALLOWED_HOSTS": "advisor.example",
        "SECRET_KEY": "".join(chr(97 + (7 * place) % 26) for place in range(60)),
        "ADVISOR_VAR_DIR": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }

    run = subprocess.run(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_a_named_job_is_advised_on_and_predicted(catalog: None) -> None:
    advised = answer("advise", "--preset", "lora-8b")
    predicted = answer("predict", "--preset", "lora-8b", "--sku", "aws/p4de.24xlarge", "--gpus", "8")

    assert advised["workload"]["name"] == "LoRA adapters for an 8B language model"
    assert advised["offers"]
    assert predicted["samples_per_step"] == 32


def test_the_plans_of_both_sides_of_the_verdict_are_printed(catalog: None) -> None:
    plans = {one["role"]: one for one in answer("advise", "--workload", EXAMPLE, "--gpus", "8")["plans"]}

    assert {"nvlink", "pcie", "top_offer"} <= set(plans)
    methods = [one["method"] for one in plans["nvlink"]["plans"]]
    assert len(methods) == len(set(methods)) > 3


def test_a_preset_that_is_not_there_is_named(catalog: None) -> None:
    assert "no preset abacus" in refused("advise", "--preset", "abacus")
