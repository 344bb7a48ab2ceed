"""Everyday load as tables in Markdown: figures, and ratios of Baton to each peer and to a bare LPUSH.

Guaranteed: every contender has a row; a figure it does not have is a dash, and the cause stands below. Figures are
medians over the rounds, ratios those of Baton's figure over the other's in the same round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Mapping, Optional, Sequence

from .loads import KINDS, LPUSH, PUSH, Kind
from .measurement import Figures

Figure = Callable[[Figures], Optional[float]]


@dataclass
class Standing:
    """What is known of one contender in one kind of load."""

    rounds: dict[int, Figures] = field(default_factory=dict)
    skipped: Optional[str] = None  # the cause, if it did not run or stopped running

    def figures(self, figure: Figure) -> dict[int, float]:
        every = {number: figure(one) for number, one in self.rounds.items()}
        return {number: value for number, value in every.items() if value is not None}


# By contender, then by kind.
Standings = Mapping[str, Mapping[str, Standing]]


def tables(standings: Standings, remarks: Sequence[str]) -> str:
    """Baton first, then the bare LPUSH, then the others as they come."""
    names = sorted(standings, key=lambda name: (name != "baton", name != LPUSH))
    heads = [head for kind in KINDS for head in (kind.title, "Redis µs")]
    figures = [[name, *(cell for kind in KINDS for cell in _figures(standings[name], kind)), _spread(standings[name])]
               for name in names]
    parts = [_markdown(["", *heads, "widest spread"], figures)]
    if "baton" in standings and len(names) > 1:
        ratios = [[name, *(cell for kind in KINDS for cell in _ratios(standings, name, kind))]
                  for name in names if name != "baton"]
        parts.append(_markdown(["Baton ÷", *heads], ratios))
    return "\n\n".join([*parts, "\n".join([*remarks, *_causes(standings)])])


def _rate(one: Figures) -> Optional[float]:
    return one.per_s


def _cpu(one: Figures) -> Optional[float]:
    return one.redis_cpu_us


def _figures(mine: Mapping[str, Standing], kind: Kind) -> tuple[str, str]:
    standing = mine.get(kind.name, Standing())
    rates, costs = standing.figures(_rate), standing.figures(_cpu)
    return (f"{median(rates.values()):,.0f}" if rates else "–", f"{median(costs.values()):,.1f}" if costs else "–")


def _ratios(standings: Standings, name: str, kind: Kind) -> tuple[str, str]:
    baton = standings["baton"].get(kind.name, Standing())
    other = standings[name].get(kind.name, Standing())

    def ratio(figure: Figure) -> str:
        ours, theirs = baton.figures(figure), other.figures(figure)
        shared = ours.keys() & theirs.keys()
        return f"{median(ours[number] / theirs[number] for number in shared):,.2f}" if shared else "–"

    return ratio(_rate), ratio(_cpu)


def _spread(mine: Mapping[str, Standing]) -> str:
    """Of the kind whose rate differs most between rounds."""
    spreads = [(max(rates) - min(rates)) / median(rates)
               for rates in (list(standing.figures(_rate).values()) for standing in mine.values()) if len(rates) > 1]
    return f"{max(spreads):.0%}" if spreads else "–"


def _causes(standings: Standings) -> list[str]:
    titles = {kind.name: kind.title for kind in KINDS}
    causes = []
    for name, mine in standings.items():
        skipped = {titles[kind]: standing.skipped for kind, standing in mine.items() if standing.skipped is not None}
        if len(skipped) == len(KINDS) and len(set(skipped.values())) == 1:
            causes.append(f"{name} skipped: {next(iter(skipped.values()))}")
        else:
            causes.extend(f"{name}, {title}, skipped: {cause}" for title, cause in skipped.items())
        causes.extend(f"{name}, {titles[kind]}: exactly once: {one.verdict}" for kind, standing in mine.items()
                      for one in standing.rounds.values() if not one.exactly_once)
    return causes


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def empty(names: Sequence[str]) -> dict[str, dict[str, Standing]]:
    """Standings before the first round; a bare LPUSH has them if Baton takes part."""
    standings = {name: {kind.name: Standing() for kind in KINDS} for name in names}
    if "baton" in names:
        standings[LPUSH] = {PUSH.name: Standing()}
    return standings
