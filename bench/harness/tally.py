"""What the workers wrote down: how often each job ran, and when the first and the last one did.

A worker process keeps a count a job in memory and writes it every `PERIOD_S` to a file of its own in the tally folder:
a line of JSON (`handled`; `failed`, attempts that failed on purpose; `first_ns` and `last_ns` on the monotonic clock,
of jobs that were handled), then one byte a job, its count up to 255.
Guaranteed here: the verdict is made from the counts of all processes together, never from a worker's own opinion.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PERIOD_S = 0.1


@dataclass(frozen=True)
class Progress:
    """How far the workers have come."""

    handled: int
    failed: int
    first_ns: int
    last_ns: int

    @property
    def per_s(self) -> float:
        """The one rule: jobs after the first, over the time from the first job's start to the last one's."""
        return (self.handled - 1) * 1e9 / max(1, self.last_ns - self.first_ns)


@dataclass(frozen=True)
class Verdict:
    """Whether each job ran once."""

    lost: int
    repeated: int

    @property
    def exactly_once(self) -> bool:
        return self.lost == 0 and self.repeated == 0

    def __str__(self) -> str:
        if self.exactly_once:
            return "yes"
        return f"no: {self.lost} lost, {self.repeated} repeated"


def progress(folder: Path) -> Progress:
    headers = []
    for path in folder.glob("*.tally"):
        with path.open("rb") as file:
            headers.append(json.loads(file.readline()))
    return Progress(
        handled=sum(header["handled"] for header in headers),
        failed=sum(header.get("failed", 0) for header in headers),
        first_ns=min((header["first_ns"] for header in headers if header["handled"] > 0), default=0),
        last_ns=max((header["last_ns"] for header in headers if header["handled"] > 0), default=0),
    )


def verdict(folder: Path, jobs: int) -> Verdict:
    totals = [0] * jobs
    for path in folder.glob("*.tally"):
        with path.open("rb") as file:
            file.readline()
            totals = [total + count for total, count in zip(totals, file.read())]
    return Verdict(lost=totals.count(0), repeated=sum(total > 1 for total in totals))
