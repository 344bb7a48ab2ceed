"""Baton's own entry: `baton bench` against the same server.

Its exit code is its verdict: the command ends with a deep audit of the books, which recounts the data, and exits with
0 only if every message was counted exactly once; anything else is a failure here, with the command's own words. All
knowledge of its flags and fields is in this file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

from .bodies import BODY_BYTES
from .children import ChildFailed, finish
from .loads import KINDS, LPUSH, Kind
from .measurement import Absent, Bench, Failed, Figures, Measurement

ASK_LIMIT_S = 30.0
# What `--messages` is under everyday load: its measures take a share of it each.
MESSAGES, QUICK_MESSAGES = 1_000_000, 20_000
# Of each kind: the fields of the rate and of the server's time, and the share.
EVERYDAY = {
    "push": ("everyday_push_per_s", "everyday_push_cpu_us", 10),
    LPUSH: ("raw_everyday_push_per_s", "raw_everyday_push_cpu_us", 10),
    "both": ("everyday_whole_per_s", "everyday_whole_cpu_us", 10),
    "burn": ("work_burn_per_s", "work_burn_cpu_us", 200),
    "wait": ("work_wait_per_s", "work_wait_cpu_us", 50),
    "fail": ("work_fail_per_s", "work_fail_cpu_us", 50),
}


@dataclass(frozen=True)
class Baton:
    """The binary to measure."""

    binary: Path
    name: str = "baton"

    def jobs(self, quick: bool) -> int:
        return 100_000 if quick else 1_000_000

    def version(self, folder: Path) -> str:
        if not self.binary.exists():
            raise Absent(f"there is no {os.path.relpath(self.binary)} (make build)")
        try:
            finish([str(self.binary), "bench", "--help"], folder / "help.log", ASK_LIMIT_S)
            return finish([str(self.binary), "--version"], folder / "version.log", ASK_LIMIT_S).split()[-1]
        except ChildFailed as error:
            raise Absent(f"it has no usable bench command: {error}") from error

    def measure(self, bench: Bench, jobs: int) -> Measurement:
        wanted = ("push_per_s", "process_per_s", "cpu_us", "done")
        figures = self.figures(bench, "push,process", jobs, wanted)
        return Measurement(
            jobs=jobs,
            push_per_s=figures["push_per_s"],
            process_per_s=figures["process_per_s"],
            redis_cpu_us=figures["cpu_us"],
            exactly_once=figures["done"] == jobs,
            verdict="yes" if figures["done"] == jobs else f"no: {figures['done']:.0f} of {jobs} are done",
        )

    def figures(self, bench: Bench, only: str, messages: int, wanted: Sequence[str]) -> dict[str, float]:
        """What `baton bench` says of this server."""
        command = [str(self.binary), "bench", "--store", f"redis://127.0.0.1:{bench.server.port}/0", "--only", only,
                   "--messages", str(messages), "--bytes", str(BODY_BYTES), "--rounds", "1", "--json"]
        output = finish(command, bench.folder / "baton.log", bench.limit_s)
        for line in reversed(output.splitlines()):
            try:
                report = json.loads(line)["redis"]
                return {name: float(report[name]) for name in wanted}
            except (ValueError, KeyError, TypeError):
                continue
        raise Failed(f"baton bench printed no figures for Redis: {output[-120:]!r}")


@dataclass(frozen=True)
class BatonEveryday:
    """Baton as a contender: one run of its own measures does all kinds, and the bare LPUSH next to the first."""

    baton: Baton

    @property
    def name(self) -> str:
        return self.baton.name

    def courses(self) -> Sequence[Sequence[Kind]]:
        return [KINDS]

    def measure(self, bench: Bench, course: Sequence[Kind], quick: bool) -> Mapping[str, Figures]:
        names = [name for fields in EVERYDAY.values() for name in fields[:2]]
        messages = QUICK_MESSAGES if quick else MESSAGES
        figures = self.baton.figures(bench, "everyday,work", messages, names)
        return {kind: Figures(jobs=messages // share, per_s=figures[rate], redis_cpu_us=figures[cpu],
                              exactly_once=True, verdict="yes")  # anything else is no figure but a failure
                for kind, (rate, cpu, share) in EVERYDAY.items()}

    def remarks(self) -> Sequence[str]:
        return []
