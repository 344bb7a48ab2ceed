"""Child processes that cannot outlive the measurement.

Guaranteed: every child leads a process group of its own, has a time limit or is stopped explicitly, and whatever it
left in its group is killed before its process id is given back to the system, so no signal can reach a stranger.
All are of one session: Linux shares cores out by session first, so sixteen producers with sessions of their own would leave
the server another share than sixteen children of one command.
A child that fails says why: the last line of its output is part of the error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Callable, Mapping, Optional, Sequence

from .interruption import pause

POLL_S = 0.02
STOP_GRACE_S = 5.0


class ChildFailed(Exception):
    """A child could not start, failed, or did not finish in time."""


class Child:
    """One process and its group; its output goes to a file. Leaving the `with` block stops all of it."""

    def __init__(self, command: Sequence[str], log: Path, cwd: Optional[Path] = None,
                 env: Optional[Mapping[str, str]] = None) -> None:
        self._name = Path(command[0]).name
        self._log = log
        try:
            with log.open("wb") as sink:
                self._process = subprocess.Popen(
                    list(command), cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                    stdout=sink, stderr=subprocess.STDOUT, preexec_fn=os.setpgrp)
        except OSError as error:
            raise ChildFailed(f"{self._name}: {error.strerror}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    def ended(self) -> bool:
        """Whether the process has ended. It is not reaped, so its id, and its group's, stay its own."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def wait(self, limit_s: float) -> int:
        """Waits for the end, clears the group, returns the exit code."""
        if not self._ends_within(limit_s, pause):
            raise ChildFailed(f"{self._name} did not finish within {limit_s:g} s")
        self._clear_group()
        return self._process.returncode

    def stop(self) -> None:
        """Asks the group to leave, then kills what is still there. Harmless if nothing is."""
        if self._process.returncode is not None:
            return
        self._signal_group(signal.SIGTERM)
        self._ends_within(STOP_GRACE_S, time.sleep)
        self._clear_group()

    def last_words(self) -> str:
        """The last line the child wrote that is not blank: usually the cause."""
        lines = [line.strip() for line in self.output().splitlines()]
        return next((line for line in reversed(lines) if line), "no output")[:200]

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def _ends_within(self, limit_s: float, rest: Callable[[float], None]) -> bool:
        deadline = time.monotonic() + limit_s
        while not self.ended():
            if time.monotonic() > deadline:
                return False
            rest(POLL_S)
        return True

    def _signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # the group is already empty

    def _clear_group(self) -> None:
        # The order matters: the leader, dead or alive, holds the group's id until wait() reaps it.
        self._signal_group(signal.SIGKILL)
        self._process.wait()


def finish(command: Sequence[str], log: Path, limit_s: float, cwd: Optional[Path] = None,
           env: Optional[Mapping[str, str]] = None) -> str:
    """Runs a command to its end and returns its output; anything but exit code 0 is a failure."""
    with Child(command, log, cwd, env) as child:
        code = child.wait(limit_s)
        if code != 0:
            raise ChildFailed(f"{Path(command[0]).name} ended with {code}: {child.last_words()}")
        return child.output()
