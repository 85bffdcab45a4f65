"""All checks and all tests, from nothing: what `make test` runs.

Style and directions first (seconds), then the suite on SQLite, then what touches the database again on PostgreSQL.
"""

import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

from tests.paths import REPOSITORY
from tests.servers import postgres_server

PYTHON = sys.executable
TOOLS = Path(PYTHON).parent
ON_POSTGRES = [
    *(f"tests/advisor/test_{name}.py" for name in ("api", "catalog_pages", "draft_effect", "services")),
    "tests/catalog",
    "tests/profiling/test_runs.py",
]
ASKS_NO_DATABASE = [
    f"--ignore=tests/catalog/test_{name}.py"
    for name in (
        *("data_files", "download", "import_gpuhunt", "import_names", "import_skypilot", "quantities", "suspicion"),
        *("topology_drawing", "validation"),
    )
]
TWO_AT_A_TIME = ["-n", "2", "--dist", "loadfile"]


def main() -> int:
    """Exit code 0 when everything passed."""
    _ensure_chromium()
    _run("style", TOOLS / "ruff", "check", "--no-cache", ".")
    _run("layout", TOOLS / "ruff", "format", "--check", ".")
    _run("directions between rooms", TOOLS / "lint-imports")
    _run("migrations", PYTHON, "manage.py", "makemigrations", "--check", "--dry-run")
    _run("OpenAPI document", PYTHON, "manage.py", "spectacular", "--validate", "--fail-on-warn", "--file", os.devnull)
    _run("tests on SQLite", PYTHON, "-m", "pytest", "-q", *TWO_AT_A_TIME)
    with postgres_server() as url:
        _run(
            "tests on PostgreSQL",
            PYTHON,
            "-m",
            "pytest",
            "-q",
            *TWO_AT_A_TIME,
            *ON_POSTGRES,
            *ASKS_NO_DATABASE,
            TEST_DATABASE_URL=url,
        )
    return 0


def _ensure_chromium() -> None:
    """Browser tests need Chromium, and Playwright's driver libatomic; as root on Debian they are installed."""
    is_there = shutil.which("chromium") and find_library("atomic")
    if is_there or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    packages = ["chromium", "libatomic1", "fonts-dejavu-core"]
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *step], env=environment, check=False, stdout=subprocess.DEVNULL)


def _run(title: str, *command: str | Path, **variables: str) -> None:
    print(f"── {title}", flush=True)
    result = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **variables}, check=False)
    if result.returncode:
        sys.exit(f"✗ {title} failed")


if __name__ == "__main__":
    sys.exit(main())
