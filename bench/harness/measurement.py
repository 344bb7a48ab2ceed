"""What one entrant did in one round, and what it takes to take part.

An entrant says which version it is, or why it is absent, and measures itself against a server that has just started.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional, Protocol, Sequence

from .loads import Kind
from .server import Server


class Absent(Exception):
    """The entrant cannot take part here; the message is the cause."""


class Failed(Exception):
    """A measurement came to nothing; the message is the cause."""


@dataclass(frozen=True)
class Measurement:
    """The figures of one entrant in one mode and round."""

    jobs: int
    push_per_s: float
    process_per_s: float
    redis_cpu_us: float  # of the server, a job, pushing and processing together
    exactly_once: bool
    verdict: str


@dataclass(frozen=True)
class Figures:
    """What one entrant did in one kind of everyday load and one round."""

    jobs: int
    per_s: Optional[float]  # none where it would say nothing
    redis_cpu_us: float  # of the server, a job
    exactly_once: bool
    verdict: str


@dataclass(frozen=True)
class Bench:
    """What a measurement works with: a fresh server, a folder of its own, the bodies, and how long it may take."""

    server: Server
    folder: Path
    bodies: Path
    limit_s: float


class Entrant(Protocol):
    """Baton or a peer."""

    @property
    def name(self) -> str:
        """What the table calls it."""

    def jobs(self, quick: bool) -> int:
        """How many jobs it gets: enough for a steady rate, few enough for the slow ones to finish."""

    def version(self, folder: Path) -> str:
        """Its version; raises `Absent` if it cannot take part."""

    def measure(self, bench: Bench, jobs: int) -> Measurement:
        """One measurement; raises `Failed`, or what its children and its server raise."""


class Contender(Protocol):
    """Baton or a peer under everyday load."""

    @property
    def name(self) -> str:
        """What the table calls it."""

    def courses(self) -> Sequence[Sequence[Kind]]:
        """The kinds it does, those together that it does on one server."""

    def measure(self, bench: Bench, course: Sequence[Kind], quick: bool) -> Mapping[str, Figures]:
        """Its figures in each kind of a course, by the kind's name; raises as an entrant does."""

    def remarks(self) -> Sequence[str]:
        """What a reader has to know of its figures."""
