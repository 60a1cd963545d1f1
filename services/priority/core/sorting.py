"""Places of a view in the order in which placement walks the line; ties are broken by id."""

from __future__ import annotations

import numpy as np

from services.priority.core.queue_view import QueueView
from services.priority.core.table import Floats


def first_of(view: QueueView, scores: Floats, most: int) -> list[int]:
    """The first waiting jobs by tier, score, submission and id."""
    count = view.waiting
    return sorted_by(view, [view.tier[:count], -scores[:count], view.submit_s[:count]], most)


def by_submission(view: QueueView) -> list[int]:
    """All waiting jobs by submission and id."""
    return sorted_by(view, [view.submit_s[: view.waiting]], view.waiting)


def lowest_running(view: QueueView, scores: Floats, most: int) -> list[int]:
    """Jobs that hold GPUs, the lowest score first, then by id."""
    return [view.waiting + place for place in sorted_by(view, [scores], most, view.waiting)]


def sorted_by(view: QueueView, columns: list[Floats], most: int, begin: int = 0) -> list[int]:
    """Places from `begin` on, counted from there: ascending by the columns, the first one counts
    most, then by id."""
    columns = [column[begin:] for column in columns]
    places = np.lexsort(columns[::-1])
    before, after = places[:-1], places[1:]
    same = np.logical_and.reduce([column[before] == column[after] for column in columns])
    if not same[:most].any():
        return list(places[:most].tolist())
    return by_id(view.job_ids[begin:].tolist(), places.tolist(), same.tolist(), most)


def by_id(ids: list[str], places: list[int], same: list[bool], most: int) -> list[int]:
    """`same[i]`: the jobs at i and i + 1 are equal but for their ids, which decide then."""
    found: list[int] = []
    begin = 0
    while begin < len(places) and len(found) < most:
        end = begin + 1
        while end < len(places) and same[end - 1]:
            end += 1
        found += sorted(places[begin:end], key=ids.__getitem__)
        begin = end
    return found[:most]
