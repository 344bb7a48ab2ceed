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
from .measurement import Absent
from .peer import Peer

PEERS = Path(__file__).resolve().parent.parent / "peers"
NODE = PEERS / "node"
PYTHON = PEERS / "python"
RUBY = PEERS / "ruby"
VENV = PYTHON / ".venv" / "bin"
ASK_LIMIT_S = 60.0
CORES = str(os.cpu_count() or 1)

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


def _node(name: str, unfinished: tuple[tuple[str, str], ...]) -> Peer:
    program = f"{name}.js"
    return Peer(name, 50_000, 2_000, NODE, ("node", program, "push"), ("node", program, "work"), unfinished,
                _node_version(name))


def _dramatiq() -> Peer:
    return Peer(
        name="dramatiq", full_jobs=10_000, quick_jobs=500, cwd=PYTHON,
        push=(str(VENV / "python"), "dramatiq_queue.py"),
        work=(str(VENV / "dramatiq"), "dramatiq_queue", "--queues", "bench", "--processes", CORES),
        unfinished=(("LLEN", "dramatiq:bench"), ("HLEN", "dramatiq:bench.msgs")),
        find_version=_python_version("dramatiq"))


def _celery() -> Peer:
    return Peer(
        name="celery", full_jobs=5_000, quick_jobs=300, cwd=PYTHON,
        push=(str(VENV / "python"), "celery_queue.py"),
        work=(str(VENV / "celery"), "--app", "celery_queue", "worker", "--loglevel", "WARNING", "--concurrency", CORES,
              "--without-gossip", "--without-mingle", "--without-heartbeat"),
        unfinished=(("LLEN", "celery"), ("HLEN", "unacked")),
        find_version=_python_version("celery"))


def _sidekiq() -> Peer:
    return Peer(
        name="sidekiq", full_jobs=50_000, quick_jobs=2_000, cwd=RUBY,
        push=("ruby", "push.rb"),
        work=("sidekiq", "--require", "./job.rb", "--concurrency", "10", "--queue", "bench"),
        unfinished=(("LLEN", "queue:bench"),),
        find_version=_sidekiq_version)


def roster() -> list[Peer]:
    """The peers in the order in which a round measures them."""
    bull_lists = (("LLEN", "bull:bench:wait"), ("LLEN", "bull:bench:active"))
    return [
        _node("bee-queue", (("LLEN", "bq:bench:waiting"), ("LLEN", "bq:bench:active"))),
        _node("bull", bull_lists),
        _node("bullmq", bull_lists),
        _sidekiq(),
        _dramatiq(),
        _celery(),
    ]
