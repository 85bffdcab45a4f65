"""Everything on one machine: database, catalog, sample study, broker, worker and web server."""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from django.utils import timezone

from advisor import broker
from advisor.processes import spawn
from advisor.sample import ensure_sample_study

STOP_AFTER_S = 3.0
WORKER_RESTARTS = 3


class Command(BaseCommand):
    help = "Runs the whole service on this machine: web pages, API, admin and a background worker."
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port (default: 8000, or the next free one)")

    def handle(self, *, host: str, port: int, **options: object) -> None:
        if not settings.PUBLIC and host not in ("127.0.0.1", "localhost", "::1"):
            raise CommandError("Set ALLOWED_HOSTS and SECRET_KEY before listening on an address that others can reach.")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # a shell that starts this in the background has it ignore Ctrl-C, and so would all that it starts
        signal.signal(signal.SIGINT, signal.default_int_handler)
        lock = _lock()
        port = _free_port(host, port)
        self._prepare()
        children = _Children()
        try:
            self._start_broker(children)
            ensure_sample_study(today=timezone.now().date())
            children.add("worker", lambda: _python("-m", "celery", *_WORKER))
            children.add("web server", lambda: _python("-m", "gunicorn", *_web(host, port)))
            _wait_for_web(host, port)
            self._greet(host, port)
            children.watch(self.stderr.write)
        except KeyboardInterrupt:
            self.stdout.write("\nStopping …")
        finally:
            children.stop()
            lock.close()

    def _prepare(self) -> None:
        call_command("migrate", verbosity=0)
        call_command("load_catalog", verbosity=0)
        shutil.rmtree(settings.FILE_UPLOAD_TEMP_DIR, ignore_errors=True)
        Path(settings.FILE_UPLOAD_TEMP_DIR).mkdir(mode=0o700)

    def _start_broker(self, children: "_Children") -> None:
        if settings.EMBEDDED_BROKER_SOCKET:
            children.add("broker", lambda: broker.start(settings.EMBEDDED_BROKER_SOCKET, settings.VAR_DIR))
        _wait_for_broker()

    def _greet(self, host: str, port: int) -> None:
        address = f"http://{host}:{port}/"
        self.stdout.write(self.style.SUCCESS(f"\nThe advisor is ready:  {address}"))
        self.stdout.write(f"  sample study        {address}studies/sample/")
        self.stdout.write(f"  REST API            {address}api/v1/docs/   (a key: {_command('create_api_key NAME')})")
        self.stdout.write(f"  catalog admin       {address}admin/         {_admin_hint()}")
        self.stdout.write("Ctrl-C stops everything; the data stays in " + str(settings.VAR_DIR))
        self.stdout.flush()  # a pipe (tee, a log) shows it now, not when the service ends


_RANKS_AT_ONCE = min(4, os.cpu_count() or 1)
_WORKER = [
    *("--quiet", "-A", "advisor", "worker", "-B", "--concurrency", str(_RANKS_AT_ONCE), "--loglevel", "WARNING"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
]


def _web(host: str, port: int) -> list[str]:
    return [
        *("advisor.wsgi", "--bind", f"{host}:{port}", "--worker-class", "gthread", "--workers", "1", "--threads", "8"),
        *("--timeout", "120", "--log-level", "warning", "--limit-request-line", "4094"),
    ]


def _python(*arguments: str) -> subprocess.Popen[bytes]:
    return spawn([sys.executable, *arguments], cwd=settings.BASE_DIR)


class _Children:
    """The processes of the service, started in order and stopped in reverse."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._start: dict[str, Callable[[], subprocess.Popen[bytes]]] = {}
        self._restarts = 0

    def add(self, name: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start[name] = start
        self._running[name] = start()

    def watch(self, say: Callable[[str], object]) -> None:
        """Return never, unless a process other than the worker ends; the worker is started again a few times."""
        while True:
            time.sleep(0.5)
            for name, process in self._running.items():
                if process.poll() is None:
                    continue
                if name != "worker" or self._restarts >= WORKER_RESTARTS:
                    raise CommandError(f"The {name} ended with code {process.returncode}; everything is stopped.")
                self._restarts += 1
                say(f"The worker ended with code {process.returncode}; starting it again.")
                _kill(process)
                self._running[name] = self._start[name]()

    def stop(self) -> None:
        # web and worker together, the broker last: the worker hands unfinished messages back to it
        order = [name for name in reversed(self._running) if name != "broker"]
        threads = [threading.Thread(target=_stop, args=(self._running[name],)) for name in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if "broker" in self._running:
            _stop(self._running["broker"])


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_AFTER_S)
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lock() -> IO[str]:
    """Held while this command runs: two services on one data folder would take each other's broker away."""
    lock = (Path(settings.VAR_DIR) / "serve.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CommandError(f"The service already runs on {settings.VAR_DIR}; stop it first.") from error
    return lock


def _command(arguments: str) -> str:
    python = os.path.relpath(sys.executable)
    return f"{python if not python.startswith('..') else sys.executable} manage.py {arguments}"


def _free_port(host: str, wanted: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(wanted, wanted + 10):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                return port
    raise CommandError(f"Ports {wanted} to {wanted + 9} are all in use; choose another with --port.")


def _wait_for_broker() -> None:
    url = settings.CACHES["default"]["LOCATION"]
    if not _until(lambda: broker.answers(url), seconds=10):
        raise CommandError("The Redis server does not answer; check REDIS_URL.")


def _wait_for_web(host: str, port: int) -> None:
    def accepts() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return True
        return False

    if not _until(accepts, seconds=30):
        raise CommandError("The web server did not start; its messages are above.")


def _until(condition: Callable[[], bool], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _admin_hint() -> str:
    """How to sign in; on SQLite a first administrator is made with a random password."""
    users = get_user_model().objects
    note = Path(settings.VAR_DIR) / "admin-password.txt"
    admin = users.filter(username="admin", is_superuser=True).first()
    if admin and note.exists() and admin.check_password(note.read_text().strip()):
        return f"(user admin, password in {note})"
    if users.filter(is_superuser=True).exists():
        return "(your administrator)"
    if settings.DATABASES["default"] is not settings.SQLITE:
        return f"(make an administrator: {_command('createsuperuser')})"
    password = secrets.token_urlsafe(12)
    note.touch(mode=0o600)
    note.write_text(password + "\n")
    users.create_superuser("admin", password=password)
    return f"(user admin, password {password}, kept in {note})"
