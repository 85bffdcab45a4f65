"""The real thing: web server, worker, broker and database as processes of their own, spoken to over HTTP."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.paths import REPOSITORY
from tests.servers import postgres_server, redis_server

PATIENCE_S = 60


@dataclass
class Stack:
    environment: Mapping[str, str]
    port: int
    key: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def manage(self, *arguments: str) -> str:
        """Standard output of a management command."""
        command = [sys.executable, "manage.py", *arguments]
        result = subprocess.run(
            command, cwd=REPOSITORY, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return result.stdout.strip()

    def start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", *arguments]
        self.processes[name] = subprocess.Popen(command, cwd=REPOSITORY, env=self.environment, start_new_session=True)

    def start_worker(self) -> None:
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
        self.start("worker", "celery", "-A", "advisor", "worker", "-B", "--concurrency", "1", *quiet)

    def kill(self, name: str) -> None:
        """kill -9 for the process and all its children."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def call(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> tuple[int, Any]:
        """Status and parsed body of one API request with this stack's key."""
        headers = {"Authorization": f"Api-Key {self.key}"} if self.key else {}
        if content_type:
            headers["Content-Type"] = content_type
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None

    def ask(self, workload: Mapping[str, Any], **goal: Any) -> tuple[int, Any]:
        """A described study."""
        body = json.dumps({"workload": workload, **goal}).encode()
        return self.call("POST", "/api/v1/studies/", body, "application/json")

    def upload(self, *paths: Path, **fields: str) -> tuple[int, Any]:
        """A study of a capture."""
        boundary = uuid.uuid4().hex
        body = b"".join(_part(boundary, f'name="{name}"', value.encode()) for name, value in fields.items())
        for path in paths:
            body += _part(boundary, f'name="files"; filename="{path.name}"', path.read_bytes())
        body += f"--{boundary}--\r\n".encode()
        return self.call("POST", "/api/v1/studies/", body, f"multipart/form-data; boundary={boundary}")

    def study(self, pk: str) -> Any:
        status, study = self.call("GET", f"/api/v1/studies/{pk}/")
        assert status == 200
        return study

    def wait_until(self, pk: str, *states: str) -> Any:
        """The study once it is in one of these states."""
        return until(lambda: _if(self.study(pk), lambda study: study["state"] in states), f"{pk} never in {states}")


@contextlib.contextmanager
def running(database: str) -> Iterator[Stack]:
    """A stack on ``sqlite`` or ``postgres``, with its catalog loaded, an API key, web server and worker."""
    with contextlib.ExitStack() as servers:
        environment = {
            **os.environ,
            "ADVISOR_VAR_DIR": servers.enter_context(tempfile.TemporaryDirectory(prefix="advisor-stack-")),
            "REDIS_URL": servers.enter_context(redis_server()),
            "RUN_LEASE_S": "3",
            "RUN_SWEEP_S": "1",
            "API_RATE": "100000/min",
        }
        environment.pop("DATABASE_URL", None)
        if database == "postgres":
            environment["DATABASE_URL"] = servers.enter_context(postgres_server())
        stack = Stack(environment, _free_port())
        try:
            stack.manage("migrate", "--verbosity", "0")
            stack.manage("load_catalog", "--verbosity", "0")
            stack.key = stack.manage("create_api_key", "tests")
            web = ("--bind", f"127.0.0.1:{stack.port}", "--worker-class", "gthread", "--threads", "4")
            stack.start("web", "gunicorn", "advisor.wsgi", *web, "--log-level", "error")
            stack.start_worker()
            until(lambda: _accepts(stack.port), "the web server did not start")
            yield stack
        finally:
            for name in list(stack.processes):
                stack.kill(name)


def until(look: Callable[[], Any], otherwise: str) -> Any:
    """What ``look`` returns once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(otherwise)


def _if(value: Any, holds: Callable[[Any], bool]) -> Any:
    return value if holds(value) else None


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _part(boundary: str, disposition: str, value: bytes) -> bytes:
    return f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + value + b"\r\n"
