"""Ctrl-C and SIGTERM, heard only where it is safe to stop.

Guaranteed: after `listen()` a signal raises nothing by itself; the next `pause()` raises `Interrupted`. Nothing that
starts or stops a process pauses, so a child is never left behind half started, and a second signal cannot cut the
tidying short.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Optional

_asked = False


class Interrupted(Exception):
    """Somebody asked this run to end."""


def listen() -> None:
    """From here on, signals to end are only noted."""
    signal.signal(signal.SIGINT, _note)
    signal.signal(signal.SIGTERM, _note)


def pause(seconds: float) -> None:
    """Sleeps a little while waiting for something; the place where a noted signal takes effect."""
    time.sleep(seconds)
    if _asked:
        raise Interrupted


def _note(_number: int, _frame: Optional[FrameType]) -> None:
    global _asked
    _asked = True
