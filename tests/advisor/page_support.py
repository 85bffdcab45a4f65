"""What page tests share: answers to the forms, and studies in every state."""

import uuid
from datetime import timedelta
from io import BytesIO
from typing import Any

from django.test import Client
from django.utils import timezone

from advisor.examples import example_values
from advisor.models import Study
from advisor.owners import known_owner
from profiling.models import Run, RunStatus


def description(**changes: Any) -> dict[str, Any]:
    """A filled-in description form, as a browser sends it; None leaves a field out."""
    values = {name: value for name, value in example_values("llama-3.1-8b").items() if value not in ("", False)}
    sent = {
        **values,
        "study_id": str(uuid.uuid4()),
        "objective": "cost",
        "pricing": ["on_demand", "spot", "reserved_1y", "reserved_3y"],
        "flash_attention": "on",
        **changes,
    }
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
