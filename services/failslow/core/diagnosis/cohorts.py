"""Groups of ranks that do the same work: they differ along the axis of data parallelism alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.failslow.core.diagnosis.layout import AXES, Group

Coordinates = Mapping[str, int]
"""Position of a rank along each axis."""
REPLICAS = "dp"


def cohorts(layouts: Mapping[int, Coordinates]) -> tuple[tuple[int, ...], ...]:
    """Return the ranks in groups of equal work; one group where no layout is known."""
    by_place: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for rank, layout in sorted(layouts.items()):
        by_place.setdefault(_without(layout, REPLICAS), []).append(rank)
    return tuple(tuple(ranks) for ranks in by_place.values())


def groups_of(layouts: Mapping[int, Coordinates]) -> tuple[Group, ...]:
    """Return the groups that communicate along each axis, of two and more ranks."""
    groups: list[Group] = []
    for axis in AXES:
        by_place: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for rank, layout in sorted(layouts.items()):
            if axis in layout:
                by_place.setdefault(_without(layout, axis), []).append(rank)
        groups += [
            Group(axis, layouts[ranks[0]].get("pp", 0) if axis != "pp" else 0, tuple(ranks))
            for ranks in by_place.values()
            if len(ranks) > 1
        ]
    return tuple(groups)


def split(
    windows: Mapping[int, Sequence[float]], layouts: Mapping[int, Coordinates]
) -> list[dict[int, Sequence[float]]]:
    """Return the windows of each cohort."""
    known = {rank: layouts.get(rank, {}) for rank in windows}
    return [{rank: windows[rank] for rank in ranks} for ranks in cohorts(known)]


def _without(layout: Coordinates, axis: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, place) for name, place in layout.items() if name != axis))
