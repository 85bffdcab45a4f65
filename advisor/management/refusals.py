"""What commands share: reading a workload file, and ending with one clear sentence and exit code 2 on bad input."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from django.core.management import BaseCommand
from django.utils.translation import gettext as _

from advisor.engine.explain import EngineRefusal
from advisor.job_documents import Origin, StartError, described_job
from advisor.wording import sentence
from profiling.messages import sentence as reader_sentence
from profiling.notes import Refusal
from profiling.services import visible
from profiling.workload import Workload
from profiling.workload_json import WorkloadError, workload_from_json
from profiling.workload_messages import workload_sentence

BAD_INPUT = 2


class BadInput(Exception):
    """An argument that cannot be answered; its text is the sentence for the user."""


@contextmanager
def bad_input_ends(command: BaseCommand) -> Iterator[None]:
    """Say why the input cannot be answered on stderr, and exit with code 2."""
    try:
        yield
    except Refusal as refusal:
        why = reader_sentence(refusal)
    except WorkloadError as error:
        why = workload_sentence(error)
    except EngineRefusal as refusal:
        why = sentence(refusal.code, refusal.params)
    except (BadInput, StartError) as error:
        why = str(error)
    else:
        return
    command.stderr.write(visible(why))
    sys.exit(BAD_INPUT)


def described_workload(options: Mapping[str, Any]) -> Workload:
    """The job of ``--workload`` or ``--preset``. Raises BadInput, StartError or WorkloadError."""
    if options["preset"]:
        return described_job(None, Origin(preset=options["preset"]))
    return read_workload(options["workload"])


def read_workload(path: Path) -> Workload:
    """The workload in a JSON file. Raises BadInput or WorkloadError."""
    return workload_from_json(read_json(_text(path), path.name))


def read_json(text: bytes | str, name: str) -> Any:
    """Parsed JSON. Raises BadInput."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(_("%(name)s is not valid JSON: %(reason)s.") % {"name": name, "reason": error}) from error


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(
            _("%(name)s cannot be opened: %(reason)s.") % {"name": path, "reason": error.strerror}
        ) from error
