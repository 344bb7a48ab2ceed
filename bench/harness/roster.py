"""Who takes part: each peer's programs, its share of jobs, and how to tell whether it is installed.

A peer's number of jobs keeps its measurement at some seconds. Versions come from what is installed, not from the
manifests, so the table names what ran. A peer that is missing says what would install it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Callable

from .children import ChildFailed, finish
from .loads import Load
from .measurement import Absent
from .peer import Lengths, Peer

PEERS = Path(__file__).resolve().parent.parent / "peers"
NODE = PEERS / "node"
PYTHON = PEERS / "python"
RUBY = PEERS / "ruby"
VENV = PYTHON / ".venv" / "bin"
ASK_LIMIT_S = 60.0
CORES = os.cpu_count() or 1
# Jobs at once that wait for something.
WAITING = 256

# Known, and never measured here: the table says so instead of leaving them out.
NOT_BUILT_IN = {
    "chasquimq": "this harness has no program for it (a Rust crate that needs a build and Redis 8.6 or newer)",
}


def _node_version(package: str) -> Callable[[Path], str]:
    def find(_folder: Path) -> str:
        if shutil.which("node") is None:
            raise Absent("node is not installed")
        manifest = NODE / "node_modules" / package / "package.json"
        try:
            return str(json.loads(manifest.read_text())["version"])
        except OSError as error:
            raise Absent(f"npm package {package} is not installed (bench/install.py does it)") from error
    return find


def _python_version(package: str) -> Callable[[Path], str]:
    def find(folder: Path) -> str:
        ask = f"import importlib.metadata as m; print(m.version('{package}'))"
        try:
            return finish([str(VENV / "python"), "-c", ask], folder / "version.log", ASK_LIMIT_S).strip()
        except ChildFailed as error:
            raise Absent(f"Python package {package} is not installed (bench/install.py does it)") from error
    return find


def _sidekiq_version(folder: Path) -> str:
    try:
        return finish(["sidekiq", "--version"], folder / "version.log", ASK_LIMIT_S).split()[-1]
    except (ChildFailed, IndexError) as error:
        raise Absent(f"sidekiq is not installed (Debian: apt-get install ruby-sidekiq; {error})") from error


def _node(name: str, unfinished: Lengths) -> Peer:
    program = f"{name}.js"
    work = ("node", program, "work")
    return Peer(
        name=name, full_jobs=50_000, quick_jobs=2_000, cwd=NODE,
        push=("node", program, "push"), produce=("node", program, "produce"), work=work,
        loads={
            "push": Load(20_000, work),
            "both": Load(20_000, work),
            "burn": Load(3_000, work, processes=CORES),  # a process has one thread for its jobs
            "wait": Load(10_000, work, concurrency=WAITING),
            "fail": Load(10_000, work),
        },
        unfinished=unfinished,
        find_version=_node_version(name))


def _dramatiq() -> Peer:
    push = (str(VENV / "python"), "dramatiq_queue.py")
    work = (str(VENV / "dramatiq"), "dramatiq_queue", "--queues", "bench", "--processes", str(CORES))
    return Peer(
        name="dramatiq", full_jobs=10_000, quick_jobs=500, cwd=PYTHON,
        push=push, produce=(*push, "produce"), work=work,
        loads={
            "push": Load(8_000, work),
            "both": Load(8_000, work),
            "burn": Load(3_000, work),
            "wait": Load(5_000, (*work, "--threads", str(WAITING // CORES))),
            "fail": Load(5_000, work),
        },
        unfinished=(("LLEN", "dramatiq:bench"), ("HLEN", "dramatiq:bench.msgs"), ("LLEN", "dramatiq:bench.DQ"),
                    ("HLEN", "dramatiq:bench.DQ.msgs")),
        find_version=_python_version("dramatiq"))


def _celery() -> Peer:
    push = (str(VENV / "python"), "celery_queue.py")
    command = (str(VENV / "celery"), "--app", "celery_queue", "worker", "--loglevel", "WARNING", "--without-gossip",
               "--without-mingle", "--without-heartbeat")
    work = (*command, "--concurrency", str(CORES))
    return Peer(
        name="celery", full_jobs=5_000, quick_jobs=300, cwd=PYTHON,
        push=push, produce=(*push, "produce"), work=work,
        loads={
            "push": Load(4_000, work),
            "both": Load(4_000, work),
            "burn": Load(2_000, work),
            "wait": Load(3_000, (*command, "--pool", "threads", "--concurrency", str(WAITING))),
            "fail": Load(3_000, work),
        },
        unfinished=(("LLEN", "celery"), ("HLEN", "unacked")),
        find_version=_python_version("celery"))


def _sidekiq() -> Peer:
    command = ("sidekiq", "--require", "./job.rb", "--queue", "bench")
    work = (*command, "--concurrency", "10")
    waits = "it waits 2 to 30 s by its own rule before it tries again: its rate would say nothing"
    return Peer(
        name="sidekiq", full_jobs=50_000, quick_jobs=2_000, cwd=RUBY,
        push=("ruby", "push.rb"), produce=("ruby", "push.rb", "produce"), work=work,
        loads={
            "push": Load(20_000, work),
            "both": Load(20_000, work),
            "burn": Load(3_000, work, processes=CORES),  # a process runs one thread of Ruby at a time
            "wait": Load(10_000, (*command, "--concurrency", str(WAITING))),
            "fail": Load(10_000, work, no_rate=waits),  # many: its server idles meanwhile
        },
        unfinished=(("LLEN", "queue:bench"), ("ZCARD", "retry")),
        find_version=_sidekiq_version)


def roster() -> list[Peer]:
    """The peers in the order in which a round measures them."""
    bull_lists = (("LLEN", "bull:bench:wait"), ("LLEN", "bull:bench:active"), ("ZCARD", "bull:bench:delayed"))
    return [
        _node("bee-queue", (("LLEN", "bq:bench:waiting"), ("LLEN", "bq:bench:active"))),
        _node("bull", bull_lists),
        _node("bullmq", bull_lists),
        _sidekiq(),
        _dramatiq(),
        _celery(),
    ]
