#!/usr/bin/env python3
"""Measures Baton and its peers side by side on this machine: in bulk, with a table for each way Redis keeps its data, and
under everyday load.

Guaranteed: every measurement has a fresh private server on a loopback port and a temporary folder, both gone afterwards;
entrants take turns within each round; one that cannot run is named with the cause, at once and in the table. Exit code
0 means that Baton was measured and every message counted once, 1 that it was not, 130 that the run was interrupted.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Callable, Iterator

from harness.baton import Baton, BatonEveryday
from harness.bodies import write_bodies
from harness.children import ChildFailed
from harness.everyday import PeerEveryday
from harness.everyday_contest import EverydayContest
from harness.interruption import Interrupted, listen
from harness.journal import Journal
from harness.measurement import Absent, Bench, Contender, Entrant, Failed, Measurement
from harness.peer import Peer
from harness.roster import NOT_BUILT_IN, roster
from harness.server import MODES, ServerFailed, serving, version_of
from harness.table import Record, table

HERE = Path(__file__).resolve().parent
TABLES = ["bulk", "everyday"]


class Contest:
    """One run: who takes part, how many jobs each gets, and what came of it."""

    def __init__(self, options: argparse.Namespace, scratch: Path, journal: Journal) -> None:
        self._options = options
        self._scratch = scratch
        self._journal = journal
        self._bodies = scratch / "bodies"
        self._entrants: list[Entrant] = []
        self._absent: dict[str, str] = {}
        self._records: dict[str, dict[str, Record]] = {mode: {} for mode in options.modes}

    def muster(self) -> None:
        """Finds out who can take part, and says who cannot and why."""
        for name, cause in NOT_BUILT_IN.items():
            if self._wanted(name):
                self._skip_everywhere(name, cause)
        everyone: list[Entrant] = [Baton(self._options.baton), *roster()]
        for entrant in everyone:
            if not self._wanted(entrant.name):
                continue
            try:
                version = entrant.version(self._scratch)
            except Absent as absent:
                self._skip_everywhere(entrant.name, str(absent))
                continue
            self._entrants.append(entrant)
            for records in self._records.values():
                records[entrant.name] = Record(entrant.name)
            self._journal.write(entrant=entrant.name, version=version, jobs=entrant.jobs(self._options.quick))
            print(f"{entrant.name} {version}: {entrant.jobs(self._options.quick):,} jobs")

    def provide(self) -> None:
        """Writes the bodies that the peers push."""
        peers = [entrant for entrant in self._entrants if isinstance(entrant, Peer)]
        loads = [load.jobs(self._options.quick) for peer in peers for load in peer.loads.values()]
        most = max([*(peer.jobs(self._options.quick) for peer in peers), *loads], default=0)
        write_bodies(self._bodies, most, self._options.seed)

    def run(self) -> None:
        for number in range(1, self._options.rounds + 1):
            for mode in self._options.modes:
                for entrant in self._entrants:
                    self._turn(entrant, mode, number)

    def everyday(self) -> EverydayContest:
        """The same entrants under everyday load, in the first of the modes."""
        contenders: list[Contender] = []
        for entrant in self._entrants:
            if isinstance(entrant, Peer):
                contenders.append(PeerEveryday(entrant))
            elif isinstance(entrant, Baton):
                contenders.append(BatonEveryday(entrant))
        return EverydayContest(contenders, self._absent, self._journal, lambda: self._place(self._options.modes[0]))

    def tables(self) -> str:
        parts = []
        for mode, records in self._records.items():
            baton = records.get("baton", Record("baton"))
            parts.append(f"\n{MODES[mode][0]}\n\n{table(list(records.values()), baton)}")
        return "\n".join(parts)

    def baton_passed(self) -> bool:
        """Whether Baton, if it was asked for, ran in every round and counted every message once."""
        if not self._wanted("baton"):
            return True
        mine = [records["baton"] for records in self._records.values()]
        return all(record.skipped is None and all(one.exactly_once for one in record.rounds.values())
                   for record in mine)

    def _wanted(self, name: str) -> bool:
        return not self._options.only or name in self._options.only

    def _skip_everywhere(self, name: str, cause: str) -> None:
        self._absent[name] = cause
        for records in self._records.values():
            records[name] = Record(name, skipped=cause)
        self._journal.write(entrant=name, skipped=cause)
        print(f"{name} skipped: {cause}")

    def _turn(self, entrant: Entrant, mode: str, number: int) -> None:
        record = self._records[mode][entrant.name]
        if record.skipped is not None:
            return  # it failed in an earlier round: its cause stands in the table
        try:
            one = self._measure(entrant, mode)
        except (ChildFailed, Failed, ServerFailed, OSError) as error:
            record.skipped = str(error)
            self._journal.write(entrant=entrant.name, mode=mode, round=number, failed=str(error))
            print(f"{entrant.name} skipped: {error}", flush=True)
            return
        record.rounds[number] = one
        self._journal.write(entrant=entrant.name, mode=mode, round=number, load=os.getloadavg()[0], **asdict(one))
        print(f"round {number}, {MODES[mode][0]}: {entrant.name} enqueued {one.push_per_s:,.0f}/s, "
              f"processed {one.process_per_s:,.0f}/s, exactly once: {one.verdict}", flush=True)

    def _measure(self, entrant: Entrant, mode: str) -> Measurement:
        with self._place(mode) as bench:
            return entrant.measure(bench, entrant.jobs(self._options.quick))

    @contextmanager
    def _place(self, mode: str) -> Iterator[Bench]:
        """A fresh server and a folder of its own, both gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            with serving(self._options.redis_server, mode, folder) as server:
                yield Bench(server, folder, self._bodies, self._options.limit)


def options() -> argparse.Namespace:
    names = ["baton", *(peer.name for peer in roster()), *NOT_BUILT_IN]
    parser = argparse.ArgumentParser(description="Baton and its peers, side by side on this machine.")
    parser.add_argument("--quick", action="store_true", help="far fewer jobs: shows that it works, not how fast it is")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the table has their medians (3)")
    parser.add_argument("--only", type=_choices(names), help=f"some of {','.join(names)}")
    parser.add_argument("--modes", type=_choices(list(MODES)), default=list(MODES), help="noaof, aof or both (both)")
    parser.add_argument("--tables", type=_choices(TABLES), default=TABLES,
                        help="bulk, everyday (always in the first mode) or both (both)")
    parser.add_argument("--seed", type=int, help="of the random bodies (a new one each run, printed)")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds one step may take (180)")
    parser.add_argument("--baton", type=_path, default=HERE.parent / "target" / "release" / "baton")
    parser.add_argument("--redis-server", default="redis-server", help="the server to start (redis-server)")
    parser.add_argument("--scratch", type=Path, help="where the servers' data goes; a disk, if AOF is to mean anything")
    parser.add_argument("--out", type=Path, help="file for the raw figures (bench/results/<time>.jsonl)")
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error("--rounds must be at least 1")
    chosen.seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    return chosen


def _path(text: str) -> Path:
    return Path(text).resolve()  # a bare name means a file here, not one on the PATH


def _choices(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names
    return parse


def main() -> int:
    chosen = options()
    listen()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    journal = Journal(chosen.out or HERE / "results" / f"{stamp}.jsonl")
    try:
        with tempfile.TemporaryDirectory(prefix="baton-bench-", dir=chosen.scratch) as scratch:
            redis = version_of(chosen.redis_server, Path(scratch))
            journal.write(seed=chosen.seed, rounds=chosen.rounds, quick=chosen.quick, redis=redis,
                          cores=os.cpu_count(), system=platform.system(), release=platform.release())
            print(f"seed {chosen.seed}, Redis {redis}, {os.cpu_count()} cores, rounds: {chosen.rounds}")
            contest = Contest(chosen, Path(scratch), journal)
            contest.muster()
            contest.provide()
            everyday = contest.everyday()
            if "bulk" in chosen.tables:
                contest.run()
            if "everyday" in chosen.tables:
                everyday.run(chosen.rounds, chosen.quick)
    except ServerFailed as error:
        print(f"no Redis server to measure on: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("interrupted: servers and workers are stopped", file=sys.stderr)
        return 130
    if chosen.quick:
        print("\nquick: so few jobs show that everything runs, not how fast; do not quote these figures")
    if "bulk" in chosen.tables:
        print(contest.tables())
    if "everyday" in chosen.tables:
        print(f"\neveryday load, {MODES[chosen.modes[0]][0]}\n\n{everyday.tables()}")
    print(f"\nraw figures: {os.path.relpath(journal.path)}")
    return 0 if contest.baton_passed() and everyday.passed("baton") else 1


if __name__ == "__main__":
    sys.exit(main())
