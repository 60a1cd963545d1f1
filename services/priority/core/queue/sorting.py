"""Places of a view in the order of placement's queue scan; ties are broken by id."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history.distributions import Floats
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.queue.table import Rows


def first_of(view: QueueView, scores: Floats, most: int) -> list[int]:
    """Return the first waiting jobs by tier, score, submission and id."""
    tier, behind = view.tier[: view.waiting], -scores[: view.waiting]
    places = contenders(tier, behind, most)
    return in_order(view, places, [tier, behind, view.submit_s], most)


def by_submission(view: QueueView) -> list[int]:
    """Return all waiting jobs by submission and id."""
    return in_order(view, np.arange(view.waiting), [view.submit_s], view.waiting)


def lowest_running(view: QueueView, scores: Floats, most: int) -> list[int]:
    """Return jobs that hold GPUs, the lowest score first, then by id."""
    return in_order(view, np.arange(view.waiting, len(view.rows)), [scores], most)


def contenders(tier: Floats, behind: Floats, most: int) -> Rows:
    """Return places of jobs that may be among the first: a long queue is not sorted to its end."""
    if len(tier) <= 4 * most or tier.min() != tier.max():
        return np.arange(len(tier))
    return np.flatnonzero(behind <= np.partition(behind, most - 1)[most - 1])


def in_order(view: QueueView, places: Rows, columns: list[Floats], most: int) -> list[int]:
    """Sort ascending by the columns, the first one counts most, then by id."""
    chosen = [column[places] for column in columns]
    order = np.lexsort(chosen[::-1])
    before, after = order[:-1], order[1:]
    same = np.logical_and.reduce([column[before] == column[after] for column in chosen])
    ordered: list[int] = places[order].tolist()
    if same[:most].any():
        sort_ties_by_id(view.job_ids, ordered, same, most)
    return ordered[:most]


def sort_ties_by_id(
    ids: NDArray[Any], places: list[int], same: NDArray[np.bool_], most: int
) -> None:
    """Sort runs of equal jobs by id; `same[i]`: jobs i and i + 1 are equal but for the id."""
    apart = np.concatenate(([True], ~same, [True]))
    begins = np.flatnonzero(same & apart[:-2])
    ends = np.flatnonzero(same & apart[2:]) + 2
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if begin >= most:
            break
        places[begin:end] = sorted(places[begin:end], key=ids.__getitem__)
