"""The producer's side: the bodies the harness wrote, sent one by one, as these queues have no bulk call.

Reports the time from the first call to the last acknowledgement; connecting and reading the file come before it.
"""

from __future__ import annotations

import json
import os
import time
from itertools import islice
from typing import Callable

URL = f"redis://127.0.0.1:{os.environ['BENCH_PORT']}/0"


def push(send: Callable[[str], object]) -> None:
    with open(os.environ["BENCH_BODIES"], encoding="ascii") as file:
        bodies = [line.rstrip("\n") for line in islice(file, int(os.environ["BENCH_JOBS"]))]
    start = time.monotonic()
    for body in bodies:
        send(body)
    print(json.dumps({"push_s": time.monotonic() - start}), flush=True)
