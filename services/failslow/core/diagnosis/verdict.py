"""From measurements to the cause: compute or communication, and the GPU, node or link.

A slow GPU is one that computes longer than the median of all; a link is slow beside the median of
its axis. Both are compared by a bound and by the scatter of the others. Where nothing deviates,
the cause is unknown, and stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from services.failslow.core.diagnosis.layout import Axis
from services.failslow.core.diagnosis.validation import Pair
from shared.contracts.faults import Cause, FaultyPart

Part = TypeVar("Part", int, Pair)

COMPUTE_SLOWER = 1.1
"""FALCON uses 2 for compute, which overlooks a GPU that is 1.5 times as slow."""
LINK_SLOWER = 1.1
SCORE = 4.0
"""Robust standard deviations."""
LEAST_SPREAD = 0.01
LEAST_MEASURED = 3
TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Suspect:
    """A part that deviates: `ranks` is one of a GPU, all of a node, the pair of a link.

    `kind` is empty where a rank is slow and it is not known which part of it.
    """

    kind: FaultyPart
    ranks: tuple[int, ...]
    node_ids: tuple[str, ...]
    slower: float
    score: float

    @property
    def confidence(self) -> float:
        return self.score / (self.score + SCORE)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`suspects` are worst first; `confidence` is in 0 to 1, 0 where the cause is unknown."""

    cause: Cause
    suspects: tuple[Suspect, ...] = ()
    confidence: float = 0.0
    evidence: tuple[str, ...] = ()


UNKNOWN = Diagnosis("unknown", (), 0.0, ("no measured part deviates from its peers",))


def diagnose(
    compute_s: Mapping[int, float],
    links_s: Mapping[Axis, Mapping[Pair, float]],
    nodes: Mapping[int, str],
) -> Diagnosis:
    """Return the cause by each rank's computation and each measured link's time.

    `nodes` has the node of each rank. Compute is judged first: a slow GPU delays its links too.
    """
    slow_ranks = _slow(compute_s, COMPUTE_SLOWER)
    if slow_ranks:
        return _of("compute", _parts(slow_ranks, nodes))
    slow_links: dict[Pair, tuple[float, float]] = {}
    for times_s in links_s.values():
        slow_links |= _slow(times_s, LINK_SLOWER)
    if slow_links:
        return _of("communication", _links(slow_links, nodes))
    return UNKNOWN


def _slow(times_s: Mapping[Part, float], bound: float) -> dict[Part, tuple[float, float]]:
    """Return how many times slower than the median the deviating parts are, and their scores."""
    if len(times_s) < LEAST_MEASURED:
        return {}
    middle = median(times_s.values())
    deviations = (abs(time_s / middle - 1) for time_s in times_s.values())
    spread = max(TO_SIGMA * median(deviations), LEAST_SPREAD)
    deviating = {}
    for part, time_s in times_s.items():
        slower, score = time_s / middle, (time_s / middle - 1) / spread
        if slower >= bound and score >= SCORE:
            deviating[part] = (slower, score)
    return deviating


def _parts(slow: Mapping[int, tuple[float, float]], nodes: Mapping[int, str]) -> list[Suspect]:
    """Return slow ranks as GPUs, or as one node where all of its ranks, two or more, are slow."""
    suspects = []
    for node_id in dict.fromkeys(nodes[rank] for rank in slow):
        own = [rank for rank, at in nodes.items() if at == node_id]
        if len(own) > 1 and all(rank in slow for rank in own):
            figures = [slow[rank] for rank in own]
            suspects.append(
                Suspect(
                    "node",
                    tuple(sorted(own)),
                    (node_id,),
                    median(slower for slower, _ in figures),
                    min(score for _, score in figures),
                )
            )
        else:
            suspects += [
                Suspect("gpu", (rank,), (node_id,), *slow[rank]) for rank in own if rank in slow
            ]
    return suspects


def _links(slow: Mapping[Pair, tuple[float, float]], nodes: Mapping[int, str]) -> list[Suspect]:
    return [
        Suspect("link", pair, tuple(dict.fromkeys(nodes[rank] for rank in pair)), *figures)
        for pair, figures in slow.items()
    ]


def _of(cause: Cause, suspects: Sequence[Suspect]) -> Diagnosis:
    ranked = tuple(sorted(suspects, key=lambda suspect: (-suspect.slower, suspect.ranks)))
    worst = ranked[0]
    return Diagnosis(cause, ranked, worst.confidence, tuple(map(sentence, ranked)))


def sentence(suspect: Suspect) -> str:
    """Return the figures of a suspect in words."""
    ranks = ("rank " if len(suspect.ranks) == 1 else "ranks ") + ", ".join(map(str, suspect.ranks))
    part = f"{suspect.kind} of {ranks}" if suspect.kind else ranks
    return (
        f"{part}: {suspect.slower:.2f} times the median of its peers, {suspect.score:.1f}"
        " deviations"
    )
