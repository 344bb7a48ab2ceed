"""The rounds of everyday load: who takes part, and what came of it.

Guaranteed: contenders take turns within each round, every measurement on a fresh server; one that fails in a kind is
left out of that kind from then on, and its cause is told.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Callable, ContextManager, Sequence

from .children import ChildFailed
from .everyday_table import empty, tables
from .journal import Journal
from .loads import LPUSH, PUSH, Kind
from .measurement import Bench, Contender, Failed, Figures
from .server import ServerFailed


class EverydayContest:
    """One run; `place` gives a fresh server and what belongs to it."""

    def __init__(self, contenders: Sequence[Contender], absent: dict[str, str], journal: Journal,
                 place: Callable[[], ContextManager[Bench]]) -> None:
        self._contenders = contenders
        self._journal = journal
        self._place = place
        self._standings = empty([contender.name for contender in contenders] + list(absent))
        for name, cause in absent.items():
            for standing in self._standings[name].values():
                standing.skipped = cause

    def run(self, rounds: int, quick: bool) -> None:
        for number in range(1, rounds + 1):
            for contender in self._contenders:
                for course in contender.courses():
                    self._turn(contender, course, number, quick)

    def tables(self) -> str:
        return tables(self._standings, [remark for one in self._contenders for remark in one.remarks()])

    def passed(self, name: str) -> bool:
        """Whether a contender ran in every round, in every kind, and counted every job once."""
        return all(standing.skipped is None and all(one.exactly_once for one in standing.rounds.values())
                   for standing in self._standings.get(name, {}).values())

    def _turn(self, contender: Contender, course: Sequence[Kind], number: int, quick: bool) -> None:
        mine = self._standings[contender.name]
        if any(mine[kind.name].skipped is not None for kind in course):
            return  # it failed in an earlier round: its cause stands below the table
        try:
            with self._place() as bench:
                figures = contender.measure(bench, course, quick)
        except (ChildFailed, Failed, ServerFailed, OSError) as error:
            for kind in course:
                mine[kind.name].skipped = str(error)
                self._journal.write(entrant=contender.name, everyday=kind.name, round=number, failed=str(error))
            print(f"{contender.name} skipped: {error}", flush=True)
            return
        for kind in course:
            mine[kind.name].rounds[number] = figures[kind.name]
            self._tell(contender.name, kind.name, number, figures[kind.name])
        if LPUSH in figures:
            self._standings[LPUSH][PUSH.name].rounds[number] = figures[LPUSH]
            self._tell(LPUSH, PUSH.name, number, figures[LPUSH])

    def _tell(self, name: str, kind: str, number: int, one: Figures) -> None:
        self._journal.write(entrant=name, everyday=kind, round=number, load=os.getloadavg()[0], **asdict(one))
        rate = "–" if one.per_s is None else f"{one.per_s:,.0f}/s"
        print(f"round {number}, everyday, {kind}: {name} {rate}, Redis {one.redis_cpu_us:,.1f} µs a job, "
              f"exactly once: {one.verdict}", flush=True)
