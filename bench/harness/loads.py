"""The kinds of everyday load, and what a peer needs to know of itself to take part in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

# Processes that push one job a call, where pushing is measured.
PRODUCERS = 16
# Of the jobs that fail, one in so many, and how often they do before they work.
FAILS, RETRIES = 10, 2


@dataclass(frozen=True)
class Kind:
    """A kind of load: how it is pushed, and what its jobs do."""

    name: str
    title: str  # of its rate in the table
    job: str  # what the peers' programs call it
    producers: int


PUSH = Kind("push", "pushed singly/s", "idle", PRODUCERS)
BOTH = Kind("both", "pushed and processed/s", "idle", PRODUCERS)
BURN = Kind("burn", "1 ms CPU/s", "burn", 1)
WAIT = Kind("wait", "10 ms waiting/s", "wait", 1)
FAIL = Kind("fail", "1 in 10 failing/s", "fail", 1)
KINDS = (PUSH, BOTH, BURN, WAIT, FAIL)
KINDS_BY_NAME = {kind.name: kind for kind in KINDS}
# What a push is held against: as many `redis-benchmark` with a bare LPUSH each. Not a kind, but it has figures.
LPUSH = "LPUSH"


@dataclass(frozen=True)
class Load:
    """How a peer does one kind: how many jobs, with which worker processes."""

    full_jobs: int
    work: tuple[str, ...]
    processes: int = 1
    concurrency: Optional[int] = None  # where the worker's program asks for it
    no_rate: Optional[str] = None  # why its rate would say nothing

    def jobs(self, quick: bool) -> int:
        return min(self.full_jobs, 320) if quick else self.full_jobs
