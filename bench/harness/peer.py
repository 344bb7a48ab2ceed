"""A peer: another job queue, driven by the small programs in `bench/peers`.

One measurement: the producer pushes everything, then the worker starts and handles everything. Guaranteed: the
producer's time is its own, from connected to acknowledged; the worker's rate follows the rule in `tally`; the server's
processor time is read once the queue is empty there; late repeats are waited for before the verdict.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping, Sequence

from . import tally
from .children import Child, finish
from .interruption import pause
from .loads import Load
from .measurement import Bench, Failed, Measurement

# How long an empty queue may stand beside an unfinished tally before the missing jobs are called lost.
STALL_S = 5.0
# How long repeats may take to show up after the last job.
AFTERMATH_S = 0.5


Lengths = tuple[tuple[str, str], ...]


def environment(bench: Bench, jobs: int, tallies: Path) -> dict[str, str]:
    """What every program of a peer is told."""
    return {
        "BENCH_PORT": str(bench.server.port),
        "BENCH_JOBS": str(jobs),
        "BENCH_BODIES": str(bench.bodies),
        "BENCH_TALLY": str(tallies),
        "BENCH_TALLY_MS": str(round(tally.PERIOD_S * 1000)),
    }


@dataclass(frozen=True)
class Peer:
    """A job queue's name, its programs, and where it keeps unfinished jobs."""

    name: str
    full_jobs: int
    quick_jobs: int
    cwd: Path
    push: tuple[str, ...]
    work: tuple[str, ...]
    # Length commands that all answer 0 once every job is finished.
    unfinished: Lengths
    # Pushes a share of the jobs one a call, when the gate is opened.
    produce: tuple[str, ...]
    # What it does under each kind of everyday load.
    loads: Mapping[str, Load]
    # Finds out the installed version with the help of a folder for logs; raises `Absent` with the cause.
    find_version: Callable[[Path], str]

    def jobs(self, quick: bool) -> int:
        return self.quick_jobs if quick else self.full_jobs

    def version(self, folder: Path) -> str:
        return self.find_version(folder)

    def measure(self, bench: Bench, jobs: int) -> Measurement:
        tallies = bench.folder / "tally"
        tallies.mkdir()
        env = environment(bench, jobs, tallies)
        cpu_before_s = bench.server.cpu_s()
        push_s = self._push(bench, env)
        with Child(self.work, bench.folder / "work.log", self.cwd, env) as worker:
            await_all([worker], bench, tallies, jobs, self.unfinished)
            cpu_s = bench.server.cpu_s() - cpu_before_s
            pause(AFTERMATH_S)
            seen, verdict = tally.progress(tallies), tally.verdict(tallies, jobs)
        return Measurement(
            jobs=jobs,
            push_per_s=jobs / push_s,
            process_per_s=seen.per_s,
            redis_cpu_us=cpu_s * 1e6 / jobs,
            exactly_once=verdict.exactly_once,
            verdict=str(verdict),
        )

    def _push(self, bench: Bench, env: dict[str, str]) -> float:
        output = finish(self.push, bench.folder / "push.log", bench.limit_s, self.cwd, env)
        try:
            return float(json.loads(output.splitlines()[-1])["push_s"])
        except (IndexError, KeyError, ValueError) as error:
            raise Failed(f"the producer did not report its time: {output[-120:]!r}") from error


def await_all(workers: Sequence[Child], bench: Bench, tallies: Path, jobs: int, unfinished: Lengths) -> None:
    """Returns when all jobs ran and the queue is empty, or when the queue is empty and nothing moves any more."""
    deadline = time.monotonic() + bench.limit_s
    handled, moved_at = 0, time.monotonic()
    while True:
        for worker in workers:
            if worker.ended():
                raise Failed(f"the worker ended after {handled} of {jobs} jobs: {worker.last_words()}")
        now, before = time.monotonic(), handled
        handled = tally.progress(tallies).handled
        moved_at = now if handled != before else moved_at
        stalled = handled > 0 and now - moved_at > STALL_S
        if (handled >= jobs or stalled) and bench.server.total_length(unfinished) == 0:
            return
        if now > deadline:
            raise Failed(f"{handled} of {jobs} jobs after {bench.limit_s:g} s: {workers[0].last_words()}")
        pause(tally.PERIOD_S / 2)
