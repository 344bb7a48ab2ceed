"""The worker's side: counts each job by the number at the head of its body, and writes the counts down now and then.

The format is told in bench/harness/tally.py. Safe between threads; a process that is forked later has its own tally,
because a tally begins with the first job. A write replaces the file as a whole.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Optional

NUMBER_DIGITS = 10


class Tally:
    """The counts of this process."""

    def __init__(self) -> None:
        self._counts = bytearray(int(os.environ["BENCH_JOBS"]))
        self._path = os.path.join(os.environ["BENCH_TALLY"], f"{os.getpid()}.tally")
        self._period_s = int(os.environ["BENCH_TALLY_MS"]) / 1000
        self._lock = threading.Lock()
        self._handled = 0
        self._failed = 0
        self._first_ns = self._last_ns = time.monotonic_ns()
        threading.Thread(target=self._write_down, daemon=True).start()

    def count(self, body: str) -> None:
        at = number(body)
        with self._lock:
            self._last_ns = time.monotonic_ns()
            if self._handled == 0:
                self._first_ns = self._last_ns
            self._handled += 1
            self._counts[at] = min(255, self._counts[at] + 1)

    def fail(self) -> None:
        with self._lock:
            self._failed += 1

    def _write_down(self) -> None:
        written = 0
        while True:
            time.sleep(self._period_s)
            with self._lock:
                seen, counts = self._handled + self._failed, bytes(self._counts)
                head = {"handled": self._handled, "failed": self._failed, "first_ns": self._first_ns,
                        "last_ns": self._last_ns}
            if seen == written:
                continue
            with open(f"{self._path}.new", "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + counts)
            os.replace(f"{self._path}.new", self._path)
            written = seen


_tally: Optional[Tally] = None
_beginning = threading.Lock()


def number(body: str) -> int:
    return int(body[:NUMBER_DIGITS])


def count(body: str) -> None:
    """A job is finished."""
    _of_this_process().count(body)


def fail() -> None:
    """A job has failed, and is to be tried again."""
    _of_this_process().fail()


def _of_this_process() -> Tally:
    global _tally
    if _tally is None:
        with _beginning:
            _tally = _tally or Tally()
    return _tally
