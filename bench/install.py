#!/usr/bin/env python3
"""Installs the peers with their ordinary clients: npm, pip in a virtual environment, apt-get if this is root.

What is there already is left alone. Nothing here is fatal: a group that cannot be installed is named with the cause,
and `bench/run.py` lists its peers as skipped. Everything lands in folders that git ignores.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from harness.children import ChildFailed, finish
from harness.interruption import Interrupted, listen
from harness.roster import NODE, PYTHON, VENV

LIMIT_S = 600.0


def node_complete() -> bool:
    """Whether the packages the manifest names are there in the versions it names."""
    wanted = json.loads((NODE / "package.json").read_text())["dependencies"]
    try:
        found = {name: json.loads((NODE / "node_modules" / name / "package.json").read_text())["version"]
                 for name in wanted}
    except (OSError, ValueError):
        return False
    return bool(found == wanted)


def install_node(log: Path) -> None:
    if node_complete():
        return
    if shutil.which("npm") is None:
        raise ChildFailed("npm is not installed")
    finish(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], log, LIMIT_S, NODE)


def install_python(log: Path) -> None:
    if not (VENV / "pip").exists():
        finish([sys.executable, "-m", "venv", "--clear", str(VENV.parent)], log, LIMIT_S)
    finish([str(VENV / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--requirement", "requirements.txt"], log, LIMIT_S, PYTHON)


def install_ruby(log: Path) -> None:
    if shutil.which("sidekiq") is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ChildFailed("sidekiq is missing, and only root can have apt-get install ruby-sidekiq")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    finish(["apt-get", "update", "-qq"], log, LIMIT_S, env=env)
    finish(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "ruby-sidekiq"], log, LIMIT_S, env=env)


def main() -> int:
    listen()
    groups = {"node": install_node, "python": install_python, "ruby": install_ruby}
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as folder:
        for name, install in groups.items():
            try:
                install(Path(folder) / f"{name}.log")
            except ChildFailed as error:
                print(f"{name} peers not installed: {error}")
            except Interrupted:
                return 130
            else:
                print(f"{name} peers installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
