"""The raw figures of a run."""

from __future__ import annotations

import json
from pathlib import Path


class Journal:
    """A line of JSON each, written as they come: an interrupted run keeps what it measured."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("w", encoding="utf-8")

    def write(self, **fields: object) -> None:
        self._file.write(json.dumps(fields, ensure_ascii=False) + "\n")
        self._file.flush()
