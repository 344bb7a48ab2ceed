"""What a job does, by BENCH_KIND: nothing, burn a core for a millisecond, wait for ten, or fail the first two times if
its number ends in 0. It counts when it is finished.
"""

from __future__ import annotations

import os
import time

import tally

KIND = os.environ.get("BENCH_KIND", "idle")
RETRIES = 2 if KIND == "fail" else 0
BURN_S = 0.001
WAIT_S = 0.01


class OnPurpose(Exception):
    """A job that is meant to fail."""


def _burn(steps: int) -> int:
    """Steps of work and not a time: what a job loses to others it has to make up for."""
    state = steps
    for _ in range(steps):
        state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return state


def _steps_in(seconds: float) -> int:
    """How many steps take that long on a core of their own: the best of several tries."""
    steps, best = 5_000, float("inf")
    for _ in range(50):
        start = time.perf_counter()
        _burn(steps)
        best = min(best, time.perf_counter() - start)
    return round(steps * seconds / best)


STEPS = _steps_in(BURN_S) if KIND == "burn" else 0


def run(body: str, failures: int) -> None:
    """Does the job of this body, which has failed so often before."""
    if KIND == "burn":
        _burn(STEPS)
    elif KIND == "wait":
        time.sleep(WAIT_S)
    elif KIND == "fail" and tally.number(body) % 10 == 0 and failures < RETRIES:
        tally.fail()
        raise OnPurpose("it fails on purpose")
    tally.count(body)
