"""What page tests share: answers to the forms, and studies in every state."""

import re
import uuid
from datetime import timedelta
from io import BytesIO
from typing import Any

from django.test import Client
from django.utils import timezone

from advisor.models import Study
from advisor.owners import known_owner
from profiling.models import Run, RunStatus, Trace, TraceFile

LLAMA_8B = {
    "title": "Fine-tuning Llama 3.1 8B",
    "kind": "training",
    "precision": "bf16",
    "batch_per_step": "64",
    "model_kind": "transformer",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "8",
    "ffn_hidden": "14336",
    "gated_mlp": "on",
    "causal": "on",
    "vocabulary": "128256",
    "sequence_length": "4096",
    "parameters_billions": "8.03",
    "flash_attention": "on",
    "objective": "cost",
    "pricing": ["on_demand", "spot", "reserved_1y", "reserved_3y", "reserved_other", "monthly"],
    "samples": "100000",
}


def description(**changes: Any) -> dict[str, Any]:
    """A filled-in description form, as a browser sends it; None leaves a field out."""
    sent = {**LLAMA_8B, "study_id": str(uuid.uuid4()), **changes}
    return {name: value for name, value in sent.items() if value is not None}


def capture(*files: tuple[str, bytes], **changes: Any) -> dict[str, Any]:
    """A filled-in capture form with these files."""
    uploads = [BytesIO(content) for _, content in files]
    for upload, (name, _) in zip(uploads, files, strict=True):
        upload.name = name
    base = {"study_id": str(uuid.uuid4()), "objective": "cost", "pricing": ["on_demand"], "mode": "training"}
    return {**base, "files": uploads, **changes}


def owner_of(client: Client) -> str:
    """The owner that this client's browser is; it gets a session with its first study."""
    session = client.session
    session.setdefault("owner", "a-browser")
    session.save()
    request = type("Request", (), {"session": session, "user": type("User", (), {"is_authenticated": False})})()
    return known_owner(request)


def waiting_study(client: Client, *, title: str = "trace.json", age_s: float = 0, **run: Any) -> Study:
    """A study whose run is in this state, made ``age_s`` seconds ago."""
    made = Run.objects.create(task="advisor.study", **run)
    Run.objects.filter(pk=made.pk).update(created_at=timezone.now() - timedelta(seconds=age_s))
    made.refresh_from_db()
    return Study.objects.create(owner=owner_of(client), title=title, run=made, inputs={})


def running(step: str, **run: Any) -> dict[str, Any]:
    """The fields of a run that a worker holds."""
    lease = timezone.now() + timedelta(seconds=30)
    return {
        "status": RunStatus.RUNNING,
        "step": step,
        "token": uuid.uuid4(),
        "attempts": 1,
        "lease_until": lease,
        **run,
    }


def reading_study(client: Client, *states: str) -> Study:
    """A study whose capture is being read, one file for each state; half of a file that is running is read."""
    study = waiting_study(client)
    study.trace = Trace.objects.create(owner=study.owner, run=study.run)
    study.save()
    held = {"token": uuid.uuid4(), "lease_until": timezone.now() + timedelta(seconds=30), "progress": 0.5}
    more = {RunStatus.RUNNING: held, RunStatus.FAILED: {"error_code": "no_events"}}
    for place, state in enumerate(states):
        part = Run.objects.create(task="profiling.read", parent=study.run, status=state, **more.get(state, {}))
        name = f"rank{place}.json.gz"
        TraceFile.objects.create(trace=study.trace, run=part, name=name, size_bytes=1, sha256=f"{place:064x}")
    return study


def captured_rank(number: int | None, **changes: Any) -> dict[str, Any]:
    """One device of a stored answer, in microseconds."""
    return {
        "rank": number,
        "device_index": number or 0,
        "devices_used": 1,
        "device": "NVIDIA A100-SXM4-80GB",
        "window_us": 1000.0,
        "gpu_busy_us": 900.0,
        "compute_us": 600.0,
        "comm_us": 400.0,
        "exposed_comm_us": 250.0,
        "waiting_us": 150.0,
        "copy_us": 60.0,
        "copy_only_us": 50.0,
        "idle_us": 100.0,
        "kernels": 7,
        "unclassified_share": 0.25,
        "idle_by_cause": {
            "launch_bound_us": 60.0,
            "synchronisation_us": 30.0,
            "input_us": None,
            "unknown_us": 10.0,
        },
        "rates": [],
        "steps": 4,
        "steps_repeated": None,
        "steps_from": "profiler",
        "step_time_us": 200.0,
        "step_p10_us": 190.0,
        "step_p90_us": 230.0,
        "slowest_step_ratio": 1.5,
        **changes,
    }


def errors_of(html: str) -> list[str]:
    """The sentences of the error summary."""
    summary = re.search(r"error-summary.*?<ul>(.*?)</ul>", html, re.S)
    return [] if summary is None else re.findall(r"<li>(.*?)</li>", summary[1])
