"""Figures of two trees, round by round, as ratios with their spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

LEFT_OUT = frozenset({"settings"})
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure: the medians of both trees, and own / base round by round."""

    figure: str
    base: float
    own: float
    ratio: float
    least: float
    largest: float


def figures_of(result: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a benchmark's result, by their names joined with points."""
    if isinstance(result, Mapping):
        for name, value in result.items():
            if name not in LEFT_OUT:
                yield from figures_of(value, f"{path}.{name}" if path else str(name))
    elif isinstance(result, (int, float)) and not isinstance(result, bool):
        yield path, float(result)


def ratios(base: Sequence[Figures], own: Sequence[Figures]) -> list[Ratio]:
    """Return the figures that both trees have in each round, but those that never differ."""
    runs = (*base, *own)
    common = [name for name in base[0] if all(name in figures for figures in runs)]
    return [
        ratio_of(name, [figures[name] for figures in base], [figures[name] for figures in own])
        for name in common
        if len({figures[name] for figures in runs}) > 1 and all(figures[name] for figures in base)
    ]


def ratio_of(name: str, base: Sequence[float], own: Sequence[float]) -> Ratio:
    values = [after / before for before, after in zip(base, own, strict=True)]
    return Ratio(name, median(base), median(own), median(values), min(values), max(values))
