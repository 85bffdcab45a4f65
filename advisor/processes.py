"""Processes that do not outlive the one that started them."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends. Linux only."""


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C reaches only its parent, which stops it in order.

    On Linux it is also told to stop when its parent is killed.
    """
    parent = os.getpid()

    def tie() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    on_linux = sys.platform == "linux"
    return subprocess.Popen(command, start_new_session=True, preexec_fn=tie if on_linux else None, **options)
