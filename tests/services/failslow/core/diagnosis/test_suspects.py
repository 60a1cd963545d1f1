"""Groups that are slower than their peers are validated, with references beside them."""

from __future__ import annotations

from services.failslow.core.diagnosis.layout import Layout
from services.failslow.core.diagnosis.suspects import suspicious_groups, with_references


def test_the_slow_group_is_suspicious() -> None:
    times = dict.fromkeys(Layout(1, 2, 4).groups(), 1.0)
    slow = next(group for group in times if group.axis == "pp")
    times[slow] = 1.3
    pipelines = [group for group in suspicious_groups(times) if group.axis == "pp"]
    assert len([group for group in times if group.axis == "pp"]) == 2
    assert len(pipelines) == 2, "two peers have no median: both are validated"


def test_among_three_only_the_slow_one_is() -> None:
    times = dict.fromkeys(Layout(3, 4, 1).groups(), 1.0)
    tensor = [group for group in times if group.axis == "tp"]
    times[tensor[2]] = 1.25
    assert suspicious_groups({g: t for g, t in times.items() if g.axis == "tp"}) == (tensor[2],)


def test_the_fastest_peers_are_references() -> None:
    tensor = [group for group in Layout(2, 4, 1).groups() if group.axis == "tp"]
    times = dict(zip(tensor, (1.0, 0.9, 1.5, 0.95), strict=True))
    assert with_references((tensor[2],), times) == (tensor[2], tensor[1], tensor[3])
