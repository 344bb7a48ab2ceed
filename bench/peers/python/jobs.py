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


def run(body: str, failures: int) -> None:
    """Does the job of this body, which has failed so often before."""
    if KIND == "burn":
        ends = time.thread_time() + BURN_S  # of this thread: what it loses to others it has to make up for
        while time.thread_time() < ends:
            pass
    elif KIND == "wait":
        time.sleep(WAIT_S)
    elif KIND == "fail" and tally.number(body) % 10 == 0 and failures < RETRIES:
        tally.fail()
        raise OnPurpose("it fails on purpose")
    tally.count(body)
