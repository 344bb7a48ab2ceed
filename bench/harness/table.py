"""From rounds to a table a person can read.

Guaranteed: every entrant has a row, with its figures or with the cause why it has none. Figures are medians over the
rounds; spread is the distance of the slowest from the fastest round's process rate over their median. A ratio is
Baton's figure over the peer's in the same round, then the median of those, so that a slow hour weighs on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Optional

from .measurement import Measurement

HEADINGS = ("peer", "N", "enqueue/s", "process/s", "spread", "Redis CPU µs/job", "exactly once",
            "Baton ÷ peer, enqueue", "Baton ÷ peer, process", "rounds")


@dataclass
class Record:
    """All that is known about one entrant in one mode."""

    name: str
    rounds: dict[int, Measurement] = field(default_factory=dict)
    skipped: Optional[str] = None  # the cause, if it did not run or stopped running

    def middle(self, figure: Callable[[Measurement], float]) -> float:
        return median(figure(one) for one in self.rounds.values())


def table(records: list[Record], baton: Record) -> str:
    """One mode: Baton first, then the fastest peer first, then those without figures; the causes stand below."""
    def rank(record: Record) -> tuple[bool, float]:
        return record is not baton, -record.middle(lambda one: one.process_per_s)

    measured = sorted((record for record in records if record.rounds), key=rank)
    absent = [record for record in records if not record.rounds]
    rows = [HEADINGS, *(_row(record, baton) for record in measured), *(_absent_row(record) for record in absent)]
    causes = [f"{record.name} skipped: {record.skipped}" for record in records if record.skipped is not None]
    return "\n".join([_aligned(rows), *([""] if causes else []), *causes])


def _row(record: Record, baton: Record) -> tuple[str, ...]:
    rates = [one.process_per_s for one in record.rounds.values()]
    broken = [one.verdict for one in record.rounds.values() if not one.exactly_once]
    rounds = str(len(rates)) if record.skipped is None else f"{len(rates)}, then skipped"
    return (
        record.name,
        f"{next(iter(record.rounds.values())).jobs:,}",
        f"{record.middle(lambda one: one.push_per_s):,.0f}",
        f"{median(rates):,.0f}",
        f"{(max(rates) - min(rates)) / median(rates):.0%}" if len(rates) > 1 else "–",
        _microseconds(record.middle(lambda one: one.redis_cpu_us)),
        broken[0] if broken else "yes",
        _ratio(record, baton, lambda one: one.push_per_s),
        _ratio(record, baton, lambda one: one.process_per_s),
        rounds,
    )


def _microseconds(value: float) -> str:
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(record: Record, baton: Record, figure: Callable[[Measurement], float]) -> str:
    shared = record.rounds.keys() & baton.rounds.keys()
    if record is baton or not shared:
        return "–"
    return f"{median(figure(baton.rounds[one]) / figure(record.rounds[one]) for one in shared):,.1f}"


def _absent_row(record: Record) -> tuple[str, ...]:
    return (record.name, *("–" for _ in HEADINGS[1:-1]), "skipped")


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    text_columns = {0, HEADINGS.index("exactly once"), len(HEADINGS) - 1}

    def line(row: tuple[str, ...]) -> str:
        cells = (cell.ljust(width) if column in text_columns else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths)))
        return f"| {' | '.join(cells)} |"

    rule = "|".join("-" * (width + 1) + ("-" if column in text_columns else ":") for column, width in enumerate(widths))
    return "\n".join([line(rows[0]), f"|{rule}|", *(line(row) for row in rows[1:])])
