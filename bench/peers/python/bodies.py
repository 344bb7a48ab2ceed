"""The producer's side: the bodies the harness wrote, sent one by one, as these queues have no bulk call.

Reports times around the calls alone; connecting and reading the file come before them.
"""

from __future__ import annotations

import json
import os
import time
from itertools import islice
from typing import Callable

URL = f"redis://127.0.0.1:{os.environ['BENCH_PORT']}/0"
GATE_S = 0.005


def push(send: Callable[[str], object]) -> None:
    bodies = _bodies(0, int(os.environ["BENCH_JOBS"]))
    start = time.monotonic()
    for body in bodies:
        send(body)
    print(json.dumps({"push_s": time.monotonic() - start}), flush=True)


def produce(send: Callable[[str], object]) -> None:
    """The same by one of several processes, which begin when the harness opens the gate."""
    bodies = _bodies(int(os.environ["BENCH_FIRST"]), int(os.environ["BENCH_COUNT"]))
    with open(os.environ["BENCH_READY"], "wb"):
        pass
    while not os.path.exists(os.environ["BENCH_GO"]):
        time.sleep(GATE_S)
    begun_ns = time.monotonic_ns()
    for body in bodies:
        send(body)
    print(json.dumps({"begun_ns": begun_ns, "ended_ns": time.monotonic_ns()}), flush=True)


def _bodies(first: int, count: int) -> list[str]:
    with open(os.environ["BENCH_BODIES"], encoding="ascii") as file:
        return [line.rstrip("\n") for line in islice(file, first, first + count)]
