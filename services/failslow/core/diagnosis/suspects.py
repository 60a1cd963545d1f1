"""Finds groups that communicate more slowly than their peers: those worth a validation."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from services.failslow.core.diagnosis.layout import Group, peers

SLOWER = 1.2
"""Multiple of the peers' median from which a group is suspicious; FALCON's bound."""
REFERENCES = 2
LEAST_PEERS = 3
"""Groups from which a median shows which one deviates; where there are fewer, all are validated."""


def suspicious_groups(times_s: Mapping[Group, float]) -> tuple[Group, ...]:
    """Return the groups to validate, by the time that each spends in its collectives."""
    groups = tuple(times_s)
    return tuple(group for group in groups if _is_suspicious(group, peers(groups, group), times_s))


def with_references(
    suspicious: tuple[Group, ...], times_s: Mapping[Group, float]
) -> tuple[Group, ...]:
    """Return the suspicious groups and the fastest peers of each, to compare links with."""
    groups, chosen = tuple(times_s), dict.fromkeys(suspicious)
    for group in suspicious:
        same = sorted(peers(groups, group), key=lambda peer: (times_s[peer], peer))
        chosen |= dict.fromkeys(same[:REFERENCES])
    return tuple(chosen)


def _is_suspicious(group: Group, same: tuple[Group, ...], times_s: Mapping[Group, float]) -> bool:
    if len(same) < LEAST_PEERS:
        return True
    return times_s[group] >= SLOWER * median(times_s[peer] for peer in same)
