"""Slow GPUs, nodes and links of random layouts are named; without any the cause is unknown."""

from __future__ import annotations

from random import Random

import pytest

from services.failslow.core.diagnosis.layout import Layout
from services.failslow.core.diagnosis.suspects import suspicious_groups, with_references
from services.failslow.core.diagnosis.validation import rounds_for
from services.failslow.core.diagnosis.verdict import UNKNOWN, Diagnosis, diagnose
from tests.services.failslow.core.diagnosis.gangs import SlowGang, random_layout


def diagnosis_of(gang: SlowGang) -> tuple[Diagnosis, int]:
    """Return the diagnosis after profiling and validation, and how many rounds that took."""
    times = {group: gang.group_s(group) for group in gang.layout.groups()}
    chosen = with_references(suspicious_groups(times), times)
    rounds = rounds_for(chosen)
    return diagnose(gang.compute_s(), gang.measure(rounds, chosen), gang.nodes()), len(rounds)


def slow_gang(seed: int, gpus: int, links: int) -> SlowGang:
    random = Random(seed)
    layout = random_layout(random)
    while layout.size < 8:
        layout = random_layout(random)
    rings = [
        frozenset(pair)
        for group in layout.groups()
        for pair in zip(group.ranks, (*group.ranks[1:], group.ranks[0]), strict=True)
    ]
    return SlowGang(
        layout,
        random,
        {rank: random.uniform(1.2, 2) for rank in random.sample(range(layout.size), gpus)},
        {
            pair: random.uniform(1.3, 4)
            for pair in random.sample(sorted(set(rings), key=sorted), links)
        },
    )


def accuracy(gpus: int, links: int, cases: int = 200) -> tuple[float, int]:
    right, most_rounds = 0, 0
    for seed in range(cases):
        gang = slow_gang(seed, gpus, links)
        diagnosis, rounds = diagnosis_of(gang)
        most_rounds = max(most_rounds, rounds)
        slow = {frozenset((rank,)) for rank in gang.gpus} or set(gang.links)
        first = diagnosis.suspects[0] if diagnosis.suspects else None
        right += first is not None and frozenset(first.ranks) in slow
    return right / cases, most_rounds


@pytest.mark.parametrize(
    ("gpus", "links", "least"), [(1, 0, 0.99), (2, 0, 0.99), (0, 1, 0.99), (0, 2, 0.95)]
)
def test_the_first_suspect_is_slow(gpus: int, links: int, least: float) -> None:
    """Two slow links of a small ring without peers are too many to see what is normal."""
    share, rounds = accuracy(gpus, links)
    assert share >= least
    assert rounds <= 9


def test_a_healthy_gang_has_no_cause() -> None:
    unknown = [diagnosis_of(slow_gang(seed, 0, 0))[0] == UNKNOWN for seed in range(200)]
    assert sum(unknown) / 200 >= 0.98


def test_a_node_of_which_all_gpus_are_slow_is_named() -> None:
    gang = SlowGang(Layout(4, 4, 1), Random(1), dict.fromkeys(range(4, 8), 1.5), {})
    diagnosis, _ = diagnosis_of(gang)
    assert diagnosis.cause == "compute"
    assert [(s.kind, s.node_ids) for s in diagnosis.suspects] == [("node", ("n1",))]
    assert 0.5 < diagnosis.confidence < 1
    assert diagnosis.evidence[0].startswith("node of ranks 4, 5, 6, 7: 1.5")


def test_a_slow_link_names_both_nodes() -> None:
    gang = SlowGang(Layout(1, 8, 1), Random(1), {}, {frozenset((3, 4)): 2.0})
    diagnosis, _ = diagnosis_of(gang)
    assert diagnosis.cause == "communication"
    assert diagnosis.suspects[0].kind == "link"
    assert diagnosis.suspects[0].node_ids == ("n0", "n1")


def test_two_measurements_show_nothing() -> None:
    assert (
        diagnose({0: 1.0, 1: 9.0}, {"dp": {(0, 1): 1.0, (1, 0): 9.0}}, {0: "a", 1: "b"}) == UNKNOWN
    )
