#!/usr/bin/env python3
"""Subset sums: how long they take and how much memory, beside the program this replaces.

    make build && python3 bench/subset_sum/run.py

Prints one JSON object a line. Wall time depends on what else the machine does; processor time hardly does.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def numbers(n, seed):
    draw = random.Random(f"{seed}/{n}")
    return [draw.randrange(-(2**31), 2**31) for _ in range(n)]


def measured(command):
    """Runs a command: lines it prints, wall and processor seconds, and the most memory it took (itself: not its children)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lines = sum(1 for _ in child.stdout)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status != 0:
        sys.exit(f"{command[:6]} ended with status {status}")
    cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return {"lines": lines, "wall_s": round(wall, 4), "cpu_s": round(cpu, 3), "max_rss_mib": used.ru_maxrss // 1024}


def against_node(baton, seed):
    """22 integers beside the synchronous way in Node, which looks at every subset; whole processes for Baton."""
    # Small enough that there are matches to compare.
    data = [number % 20_001 - 10_000 for number in numbers(22, seed)]
    command = [baton, "subset-sum", "--sum", "0", "--mode", "inline", json.dumps(data)]
    runs = [measured(command) for _ in range(5)]
    ours = sorted(run["wall_s"] for run in runs)[2]
    for quiet in ("quiet", "telling"):
        node = ["node", HERE / "synchronous.js", json.dumps(data), "0", quiet]
        theirs = json.loads(subprocess.check_output(node))
        if theirs["matches"] != runs[0]["lines"]:
            sys.exit(f"Node found {theirs['matches']} matches, Baton {runs[0]['lines']}")
        yield {"what": "n=22 beside Node", "node": quiet, "node_s": round(theirs["seconds"], 3), "baton_process_s": ours,
               "times_faster": round(theirs["seconds"] / ours)}


def sizes(baton, seed):
    """All matches of random signed integers of 32 bits with sum 0, printed into a pipe."""
    for n in (44, 52):
        for mode in ("inline", "process", "interleaved"):
            command = [baton, "subset-sum", "--sum", "0", "--mode", mode, json.dumps(numbers(n, seed))]
            yield {"what": f"n={n}", "mode": mode, **measured(command)}
    command = [baton, "subset-sum", "--sum", "0", "--mode", "inline", "--count-only", "--json", json.dumps(numbers(58, seed))]
    yield {"what": "n=58 counted", "mode": "inline", **measured(command)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=ROOT / "target/release/baton")
    parser.add_argument("--seed", default="subset-sum")
    parser.add_argument("--only", choices=["node", "sizes"], action="append")
    given = parser.parse_args()
    baton, only = str(given.baton), given.only or ["node", "sizes"]
    if "node" in only:
        for row in against_node(baton, given.seed):
            print(json.dumps(row), flush=True)
    if "sizes" in only:
        for row in sizes(baton, given.seed):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
