"""`manage.py serve`: everything from nothing with one command, and nothing left behind."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from tests.paths import REPOSITORY
from tests.services.stack import until

pytestmark = pytest.mark.services

COMMAND = [sys.executable, "manage.py", "serve"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    # a name with every character that means something in a URL
    return {**own, "ADVISOR_VAR_DIR": str(tmp_path / "c++ a%41#b?")}


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def served(environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[str]]:
    process = start(environment, port)
    yield process
    if process.poll() is None:
        process.kill()


def start(environment: dict[str, str], port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--port", str(port)], cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True
    )


def greeting(process: subprocess.Popen[str]) -> str:
    lines = []
    for line in process.stdout or []:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    return "".join(lines)


def get(port: int, path: str, language: str = "en") -> tuple[int, str, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Accept-Language": language})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers.get("Location", ""), text


def sample_answer(port: int) -> str:
    _, address, _ = get(port, "/studies/sample/")
    return until(lambda: re.search(r'class="verdict.*?</section>', get(port, address)[2], re.DOTALL), "no answer")[0]


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return process.returncode


def is_alive(process: psutil.Process) -> bool:
    """A zombie has ended; it only waits for whoever adopted it to notice."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_one_command_serves_and_stops_and_serves_again(
    served: subprocess.Popen[str], environment: dict[str, str], port: int
) -> None:
    said = greeting(served)
    assert f"http://127.0.0.1:{port}/" in said
    password = (Path(environment["ADVISOR_VAR_DIR"]) / "admin-password.txt").read_text().strip()
    assert password in said
    assert get(port, "/")[0] == 200
    answer = sample_answer(port)
    processes = psutil.Process(served.pid).children(recursive=True)
    assert len(processes) >= 4

    refused = subprocess.run(COMMAND, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    assert refused.returncode != 0
    assert "already runs" in refused.stderr

    assert stop(served) == 0
    assert [process for process in processes if is_alive(process)] == []

    again = start(environment, port)
    assert password not in greeting(again)
    assert sample_answer(port) == answer
    assert stop(again) == 0


def test_killing_it_leaves_nothing_running(served: subprocess.Popen[str]) -> None:
    greeting(served)
    processes = psutil.Process(served.pid).children(recursive=True)

    served.kill()
    served.wait()

    until(lambda: not any(is_alive(process) for process in processes), "processes outlived the command")
