"""A peer under everyday load: jobs pushed one a call, by one or many processes, before or while they are worked off.

Guaranteed: producers begin together, once all of them are connected; their time runs from the first call to the last
answer. Where pushing and processing are measured together the worker has done a job before, and the time runs from the
first call to the last job. The server's processor time is that of the pushes, or of everything until its queue is
empty. Each job is counted as in the other measurement, attempts that failed on purpose too.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

from . import peer as peers, tally
from .children import Child, ChildFailed
from .interruption import pause
from .loads import BOTH, FAIL, FAILS, KINDS, KINDS_BY_NAME, PUSH, RETRIES, Kind, Load
from .measurement import Bench, Failed, Figures
from .peer import Peer, await_all, environment


class Producers:
    """Processes that push a share of the jobs each. Made, they are ready; leaving the stack stops them."""

    def __init__(self, peer: Peer, bench: Bench, env: Mapping[str, str], jobs: range, number: int,
                 stack: ExitStack) -> None:
        folder = bench.folder / f"producers-{jobs.start}"
        folder.mkdir()
        self._go = folder / "go"
        self._limit_s = bench.limit_s
        self._children = []
        ready = []
        for index in range(number):
            share = jobs[index * len(jobs) // number:(index + 1) * len(jobs) // number]
            ready.append(folder / f"{index}.ready")
            own = {"BENCH_FIRST": str(share.start), "BENCH_COUNT": str(len(share)), "BENCH_READY": str(ready[-1]),
                   "BENCH_GO": str(self._go)}
            child = Child(peer.produce, folder / f"{index}.log", peer.cwd, {**env, **own})
            self._children.append(stack.enter_context(child))
        self._await(ready)

    def push(self) -> tuple[int, int]:
        """Opens the gate; when the first began and the last ended, in nanoseconds of the monotonic clock."""
        self._go.touch()
        for child in self._children:
            if child.wait(self._limit_s) != 0:
                raise ChildFailed(f"a producer failed: {child.last_words()}")
        try:
            times = [json.loads(child.output().splitlines()[-1]) for child in self._children]
            return min(time["begun_ns"] for time in times), max(time["ended_ns"] for time in times)
        except (IndexError, KeyError, ValueError, TypeError) as error:
            raise Failed(f"a producer did not report its time: {self._children[0].last_words()}") from error

    def _await(self, ready: list[Path]) -> None:
        waited_s = 0.0
        while not all(path.exists() for path in ready):
            for child in self._children:
                if child.ended():
                    raise ChildFailed(f"a producer failed: {child.last_words()}")
            if waited_s > self._limit_s:
                raise ChildFailed(f"producers are not ready after {self._limit_s:g} s")
            pause(tally.PERIOD_S / 2)
            waited_s += tally.PERIOD_S / 2


@dataclass(frozen=True)
class PeerEveryday:
    """A peer as a contender: every kind on a server of its own."""

    peer: Peer

    @property
    def name(self) -> str:
        return self.peer.name

    def courses(self) -> Sequence[Sequence[Kind]]:
        return [(kind,) for kind in KINDS]

    def measure(self, bench: Bench, course: Sequence[Kind], quick: bool) -> Mapping[str, Figures]:
        (kind,) = course
        return {kind.name: measure(self.peer, kind, bench, quick)}

    def remarks(self) -> Sequence[str]:
        return [f"{self.name}, {KINDS_BY_NAME[kind].title}: {load.no_rate}"
                for kind, load in self.peer.loads.items() if load.no_rate]


def measure(peer: Peer, kind: Kind, bench: Bench, quick: bool) -> Figures:
    """One kind of load on a server that has just started."""
    load = peer.loads[kind.name]
    jobs = load.jobs(quick)
    tallies = bench.folder / "tally"
    tallies.mkdir()
    env = {
        **environment(bench, jobs, tallies),
        "BENCH_KIND": kind.job,
        **({} if load.concurrency is None else {"BENCH_CONCURRENCY": str(load.concurrency)}),
    }
    with ExitStack() as stack:
        if kind is BOTH:
            per_s, cpu_s = _both(peer, kind, load, bench, env, jobs, stack)
        else:
            per_s, cpu_s = _one_after_the_other(peer, kind, load, bench, env, jobs, stack)
        pause(peers.AFTERMATH_S)
        exactly_once, verdict = _judge(kind, tallies, jobs)
    return Figures(jobs=jobs, per_s=None if load.no_rate else per_s, redis_cpu_us=cpu_s * 1e6 / jobs,
                   exactly_once=exactly_once, verdict=verdict)


def _one_after_the_other(peer: Peer, kind: Kind, load: Load, bench: Bench, env: Mapping[str, str], jobs: int,
                         stack: ExitStack) -> tuple[float, float]:
    """Everything is pushed, then everything is worked off; which of the two is timed, the kind says."""
    producers = Producers(peer, bench, env, range(jobs), kind.producers, stack)
    cpu_before_s = bench.server.cpu_s()
    begun_ns, ended_ns = producers.push()
    pushed_s = bench.server.cpu_s() - cpu_before_s
    workers = _start(peer, load, bench, env, stack)
    await_all(workers, bench, _tallies(env), jobs, peer.unfinished)
    if kind is PUSH:
        return jobs * 1e9 / max(1, ended_ns - begun_ns), pushed_s
    return tally.progress(_tallies(env)).per_s, bench.server.cpu_s() - cpu_before_s


def _both(peer: Peer, kind: Kind, load: Load, bench: Bench, env: Mapping[str, str], jobs: int,
          stack: ExitStack) -> tuple[float, float]:
    """The worker has done the first job when the others are pushed."""
    workers = _start(peer, load, bench, env, stack)
    Producers(peer, bench, env, range(1), 1, stack).push()
    await_all(workers, bench, _tallies(env), 1, peer.unfinished)
    producers = Producers(peer, bench, env, range(1, jobs), kind.producers, stack)
    cpu_before_s = bench.server.cpu_s()
    begun_ns, _ = producers.push()
    await_all(workers, bench, _tallies(env), jobs, peer.unfinished)
    cpu_s = bench.server.cpu_s() - cpu_before_s
    return (jobs - 1) * 1e9 / max(1, tally.progress(_tallies(env)).last_ns - begun_ns), cpu_s


def _start(peer: Peer, load: Load, bench: Bench, env: Mapping[str, str], stack: ExitStack) -> list[Child]:
    return [stack.enter_context(Child(load.work, bench.folder / f"work-{number}.log", peer.cwd, env))
            for number in range(load.processes)]


def _tallies(env: Mapping[str, str]) -> Path:
    return Path(env["BENCH_TALLY"])


def _judge(kind: Kind, tallies: Path, jobs: int) -> tuple[bool, str]:
    verdict = tally.verdict(tallies, jobs)
    meant = RETRIES * len(range(0, jobs, FAILS)) if kind is FAIL else 0
    failed = tally.progress(tallies).failed
    if verdict.exactly_once and failed != meant:
        return False, f"no: {failed} attempts failed instead of {meant}"
    return verdict.exactly_once, str(verdict)
