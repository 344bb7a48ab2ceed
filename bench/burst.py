#!/usr/bin/env python3
"""A burst of messages at a fleet that rests: how soon its workers come, how soon they leave, and whether each message was
run once.

Guaranteed: a store of its own in a temporary folder, gone afterwards; everything that was started is stopped. Exit code
0: the workers reached their upper limit in time and went back to their lower one in time, every message was run once
(by the journal of all processes), the books balance (a deep audit), and no process was left. 1: one of that is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from harness.children import Child, ChildFailed, finish
from harness.interruption import Interrupted, listen, pause
from harness.server import MODES, ServerFailed, serving

HERE = Path(__file__).resolve().parent
QUEUE = "burst"
LIMIT_S = 300.0
LOOK_EVERY_S = 0.1
# What is promised: the upper limit after the burst, the lower one after the queue is empty.
UP_WITHIN_S, DOWN_WITHIN_S = 5.0, 30.0


class Fleet:
    """The command, on one store."""

    def __init__(self, baton: Path, store: str, folder: Path) -> None:
        self._baton, self._store, self._folder = baton, store, folder

    def command(self, *words: str) -> list[str]:
        return [str(self._baton), "--store", self._store, *words]

    def run(self, *words: str) -> str:
        return finish(self.command(*words), self._folder / f"{words[0]}.log", LIMIT_S)

    def status(self) -> tuple[list[int], dict[str, int]]:
        """The process ids of live nodes, and the queue."""
        status = json.loads(self.run("status", "--json"))
        queues = [queue for queue in status["queues"] if queue["name"] == QUEUE]
        return [node["pid"] for node in status["nodes"]], queues[0] if queues else {}


def runs(journal: Path) -> Counter[int]:
    """How often each message was run."""
    counts: Counter[int] = Counter()
    for line in journal.read_text().splitlines():
        kind, *fields = line.split()
        if kind == "run":
            first, length = int(fields[0]), int(fields[1])
            counts.update(range(first, first + length))
    return counts


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def measure(options: argparse.Namespace, fleet: Fleet, folder: Path) -> dict[str, object]:
    bodies, journal = folder / "bodies", folder / "journal"
    bodies.write_text("".join(f"{number}\n" for number in range(options.messages)))
    least, most = options.min_workers, options.max_workers
    up = fleet.command(
        "up", "--no-gateway", "--queue", QUEUE, "--handler", "demo", "--demo-delay", options.delay, "--demo-fail", "0",
        "--concurrency", str(options.concurrency), "--min-workers", str(least), "--max-workers", str(most),
        "--journal", str(journal))
    seen: set[int] = set()
    with Child(up, folder / "up.log") as running:
        deadline = time.monotonic() + LIMIT_S
        while not (folder / "up.log").read_text().count("joined as") > least:
            if running.ended() or time.monotonic() > deadline:
                raise ChildFailed(f"up: {running.last_words()}")
            pause(LOOK_EVERY_S)
        burst = time.monotonic()
        fleet.run("push", QUEUE, "--file", str(bodies))
        pushed = time.monotonic() - burst
        reached = empty = back = None
        highest = 0
        while back is None:
            pids, queue = fleet.status()
            now = time.monotonic() - burst
            seen.update(pids)
            workers = len(pids) - 1
            highest = max(highest, workers)
            if reached is None and workers >= most:
                reached = now
            if empty is None and queue.get("done") == options.messages:
                empty = now
            if empty is not None and workers <= least:
                back = now
            if running.ended() or time.monotonic() > deadline:
                raise ChildFailed(f"up: {running.last_words()}")
            pause(LOOK_EVERY_S)
        fleet.run("stop")
        running.wait(LIMIT_S)
        log = running.output()
    audit = json.loads(fleet.run("audit", "--deep", "--json"))
    counts = runs(journal)
    once = len(counts) == options.messages and set(counts.values()) == {1}
    return {
        "messages": options.messages, "pushed_s": round(pushed, 2), "highest": highest,
        "reached_max_s": reached and round(reached, 2), "empty_s": round(empty, 2),
        "back_at_min_after_s": round(back - empty, 2), "run_once": once, "balanced": audit["balanced"],
        "processes_left": sum(alive(pid) for pid in seen),
        "said": [line.split(" fleet=")[0] for line in log.splitlines() if " starting " in line or " retiring " in line],
    }


def verdict(figures: dict[str, object], most: int) -> list[str]:
    """What falls short."""
    short = []
    if figures["reached_max_s"] is None or figures["reached_max_s"] > UP_WITHIN_S:
        short.append(f"{most} workers were not reached within {UP_WITHIN_S:g} s")
    if figures["highest"] > most:
        short.append(f"there were {figures['highest']} workers, more than {most}")
    if figures["back_at_min_after_s"] > DOWN_WITHIN_S:
        short.append(f"the workers did not leave within {DOWN_WITHIN_S:g} s")
    if not figures["run_once"]:
        short.append("not every message was run once")
    if not figures["balanced"]:
        short.append("the books do not balance")
    if figures["processes_left"]:
        short.append("processes are left")
    return short


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--baton", type=Path, default=HERE.parent / "target/release/baton")
    parser.add_argument("--store", choices=["redis", "sqlite"], default="redis")
    parser.add_argument("--redis", default="redis-server", help="the server's program")
    parser.add_argument("--mode", choices=list(MODES), default="noaof")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--delay", default="5ms", help="how long a message takes")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--min-workers", type=int, default=1)
    parser.add_argument("--max-workers", type=int, default=8)
    options = parser.parse_args()
    listen()
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="baton-burst-")))
            store = f"sqlite:{folder / 'baton.db'}"
            if options.store == "redis":
                server = stack.enter_context(serving(options.redis, options.mode, folder))
                store = f"redis://127.0.0.1:{server.port}/0"
            figures = measure(options, Fleet(options.baton, store, folder), folder)
    except (ChildFailed, ServerFailed) as error:
        print(f"burst: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        return 130
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    short = verdict(figures, options.max_workers)
    print("\n".join(["FAILED", *short]) if short else "PASSED")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
