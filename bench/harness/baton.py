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

from .bodies import BODY_BYTES
from .children import ChildFailed, finish
from .measurement import Absent, Bench, Failed, Measurement

ASK_LIMIT_S = 30.0


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
        command = [str(self.binary), "bench", "--store", f"redis://127.0.0.1:{bench.server.port}/0",
                   "--only", "push,process", "--messages", str(jobs), "--bytes", str(BODY_BYTES), "--rounds", "1",
                   "--json"]
        figures = _figures(finish(command, bench.folder / "baton.log", bench.limit_s))
        return Measurement(
            jobs=jobs,
            push_per_s=figures["push_per_s"],
            process_per_s=figures["process_per_s"],
            redis_cpu_us=figures["cpu_us"],
            exactly_once=figures["done"] == jobs,
            verdict="yes" if figures["done"] == jobs else f"no: {figures['done']:.0f} of {jobs} are done",
        )


def _figures(output: str) -> dict[str, float]:
    wanted = ("push_per_s", "process_per_s", "cpu_us", "done")
    for line in reversed(output.splitlines()):
        try:
            report = json.loads(line)["redis"]
            return {name: float(report[name]) for name in wanted}
        except (ValueError, KeyError, TypeError):
            continue
    raise Failed(f"baton bench printed no figures for Redis: {output[-120:]!r}")
