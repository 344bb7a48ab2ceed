#!/usr/bin/env python3
"""Counts the instructions Baton spends on a message and compares them with those in `counts.json`.

A count does not depend on the machine's load: it shows a few per cent where a clock shows noise. Each workload runs
twice under callgrind, the second time with twice the repetitions: the difference is the work without the start of the
program. Exit code 0: nothing grew by more than a tenth, or nothing could be compared, and a line says why. 1: something
grew, or a program failed. With `--record` the counts are written anew.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Mapping, Optional, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COUNTS = HERE / "counts.json"
# Repetitions of the first run: a million instructions or more each, and seconds for all.
REPETITIONS = {
    "parcel-build": 100,
    "parcel-parse": 100,
    "parcel-bodies": 100,
    "dispatch-noop": 10,
    "dispatch-function": 5,
    "dispatch-yielding": 5,
}
TOLERANCE = 0.10
RUN_LIMIT_S = 300.0
INSTALL_LIMIT_S = 600.0


class Failed(Exception):
    """Something that had to run did not; the message is the cause."""


@dataclass(frozen=True)
class Counts:
    """Instructions a message by workload, and the compiler they were counted with."""

    rustc: str
    target: str
    instructions: dict[str, float]

    @staticmethod
    def read(path: Path) -> "Counts":
        try:
            return Counts(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise Failed(f"{os.path.relpath(path)} is not usable ({error}); write it with --record") from error

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Verdict:
    """What to say of one workload, and whether it fails the check."""

    line: str
    failed: bool = False


def compare(recorded: Mapping[str, float], counted: Mapping[str, float]) -> list[Verdict]:
    """A verdict for every workload on either side, in the order they were counted."""
    names = [*counted, *(name for name in recorded if name not in counted)]
    return [_verdict(name, recorded.get(name), counted.get(name)) for name in names]


def _verdict(name: str, before: Optional[float], now: Optional[float]) -> Verdict:
    if before is None:
        return Verdict(f"{name}: {now:.1f} instructions a message, none recorded; write it with --record", failed=True)
    if now is None:
        return Verdict(f"{name}: {before:.1f} instructions a message recorded, none counted; if it is gone for good, "
                       "write them anew with --record", failed=True)
    change = f"{name}: {now:.1f} instructions a message, {before:.1f} recorded ({now / before - 1:+.1%})"
    if now > before * (1 + TOLERANCE):
        return Verdict(f"{change}: more than {TOLERANCE:.0%} above; find out why, or accept it with --record",
                       failed=True)
    if now < before * (1 - TOLERANCE):
        return Verdict(f"{change}: more than {TOLERANCE:.0%} below; keep it so with --record")
    return Verdict(change)


def other_compiler(recorded: Counts, counted: Counts) -> Optional[str]:
    """A line on how the two were compiled, if it was not alike."""
    if recorded.rustc == counted.rustc:
        return None
    return f"recorded with rustc {recorded.rustc}, this is {counted.rustc}: a difference may be the compiler's"


def counts_of(rustc: str, target: str, program: Path, folder: Path) -> Counts:
    return Counts(rustc, target, {name: round(_a_message(program, name, times, folder), 1)
                                  for name, times in REPETITIONS.items()})


def _a_message(program: Path, workload: str, times: int, folder: Path) -> float:
    instructions, messages = _run(program, workload, times, folder)
    twice_instructions, twice_messages = _run(program, workload, 2 * times, folder)
    if messages == 0 or twice_messages != 2 * messages:
        raise Failed(f"{workload} ended well with {messages} messages, then with {twice_messages}, not twice as many")
    return (twice_instructions - instructions) / messages


def _run(program: Path, workload: str, times: int, folder: Path) -> tuple[int, int]:
    """Instructions of a whole run, and the messages it was for."""
    profile = folder / f"{workload}.{times}"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", str(program), workload, str(times)]
    printed = _finish(command, RUN_LIMIT_S)
    total = re.search(r"^(?:totals|summary):\s*(\d+)", profile.read_text(encoding="utf-8"), re.MULTILINE)
    if total is None or not printed.strip().isdigit():
        raise Failed(f"{workload} under callgrind gave no count")
    return int(total.group(1)), int(printed)


def _finish(command: Sequence[str], limit_s: float, env: Optional[Mapping[str, str]] = None) -> str:
    """Runs a command to its end and returns what it printed; any exit code but 0 is a failure with its last words."""
    name = Path(command[0]).name
    try:
        ended = subprocess.run(list(command), cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not finish within {limit_s:g} s") from error
    if ended.returncode != 0:
        words = [line.strip() for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        raise Failed(f"{name} ended with {ended.returncode}: {(words or ['no output'])[-1][:200]}")
    return ended.stdout


def built(cargo: str) -> Path:
    """Builds the program that does the work, as releases are built; cargo shows its progress itself."""
    command = [*shlex.split(cargo), "bench", "--no-run", "--locked", "-p", "baton-fleet", "--bench", "instructions",
               "--message-format", "json-render-diagnostics"]
    try:
        ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               check=False)
    except OSError as error:
        raise Failed(f"{cargo}: {error.strerror}") from error
    if ended.returncode != 0:
        raise Failed(f"{cargo} could not build the workloads")
    for line in ended.stdout.splitlines():
        artifact = json.loads(line) if line.startswith("{") else {}
        if artifact.get("executable") and artifact["target"]["name"] == "instructions":
            return Path(artifact["executable"])
    raise Failed(f"{cargo} built no program of the name instructions")


def compiler() -> tuple[str, str]:
    """The version of rustc, and what it compiles for."""
    told = dict(line.split(": ", 1) for line in _finish(["rustc", "-vV"], RUN_LIMIT_S).splitlines() if ": " in line)
    return told.get("release", "unknown"), told.get("host", "unknown")


def find_valgrind() -> None:
    """Sees to it that there is a valgrind; raises `Failed` with the cause if there is none to be had."""
    if shutil.which("valgrind") is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise Failed("valgrind is missing, and only root can have apt-get install it")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    _finish(["apt-get", "update", "-qq"], INSTALL_LIMIT_S, env)
    _finish(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "valgrind"], INSTALL_LIMIT_S, env)


def check(cargo: str, record: bool) -> bool:
    """Counts, then compares or records; whether nothing is to be complained of."""
    rustc, target = compiler()
    recorded = None if record else Counts.read(COUNTS)
    if recorded is not None and recorded.target != target:
        print(f"instruction counts skipped: they were recorded for {recorded.target}, this is {target}")
        return True
    with tempfile.TemporaryDirectory(prefix="baton-instructions-") as folder:
        counted = counts_of(rustc, target, built(cargo), Path(folder))
    if recorded is None:
        counted.write(COUNTS)
        print(f"recorded in {os.path.relpath(COUNTS)}: {json.dumps(counted.instructions)}")
        return True
    hint = other_compiler(recorded, counted)
    if hint is not None:
        print(hint)
    verdicts = compare(recorded.instructions, counted.instructions)
    for verdict in verdicts:
        print(verdict.line, file=sys.stderr if verdict.failed else sys.stdout)
    return not any(verdict.failed for verdict in verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions a message, against those recorded.")
    parser.add_argument("--record", action="store_true", help="write the counts anew instead of comparing")
    parser.add_argument("--cargo", default="cargo", help="what to build with (cargo)")
    chosen = parser.parse_args()
    try:
        find_valgrind()
    except Failed as error:
        print(f"instruction counts skipped: {error}")
        return 1 if chosen.record else 0
    try:
        return 0 if check(chosen.cargo, chosen.record) else 1
    except Failed as error:
        print(f"instruction counts: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
