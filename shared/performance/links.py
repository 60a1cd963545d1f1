"""The time of an all-reduce over links of different speed (alpha-beta model, Hockney 1994).

A ring over n members takes 2 (n - 1) steps, each of which costs the latency and sends 1/n of the
bytes (Patarasuk and Yuan 2009). Members of one node reduce first, then nodes, then racks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.performance.footprint import Footprint, Tier


@dataclass(frozen=True, slots=True)
class LinkTier:
    """A link between two members: `latency_s` per message (alpha), `bytes_per_s` (1 / beta)."""

    latency_s: float
    bytes_per_s: float


GIB = 1024.0**3
EXAMPLE_LINKS: dict[Tier, LinkTier] = {
    "node": LinkTier(5e-6, 200 * GIB),
    "rack": LinkTier(15e-6, 20 * GIB),
    "spine": LinkTier(30e-6, 5 * GIB),
}
"""NVLink within a node, 200 Gbit/s within a rack, a spine with a quarter of that: orders of
magnitude for examples, not measurements of a cluster."""


def ring_s(members: int, size_bytes: float, link: LinkTier) -> float:
    """Return the seconds of a ring all-reduce of `size_bytes` over so many members."""
    if members <= 1:
        return 0.0
    steps = 2 * (members - 1)
    return steps * (link.latency_s + size_bytes / members / link.bytes_per_s)


def all_reduce_s(
    footprint: Footprint, size_bytes: float, links: Mapping[Tier, LinkTier]
) -> float | None:
    """Return the seconds of an all-reduce within nodes, then over nodes, then over racks.

    It is None where a tier that the footprint crosses has no link in `links`.
    """
    nodes_of_a_rack = -(-footprint.nodes // footprint.racks)
    crossed: tuple[tuple[Tier, int], ...] = (
        ("node", max(footprint.per_node, default=0)),
        ("rack", nodes_of_a_rack),
        ("spine", footprint.racks),
    )
    total_s = 0.0
    for tier, members in crossed:
        if members <= 1:
            continue
        link = links.get(tier)
        if link is None:
            return None
        total_s += ring_s(members, size_bytes, link)
    return total_s


def slowdown(
    footprint: Footprint, compute_s: float, size_bytes: float, links: Mapping[Tier, LinkTier]
) -> float | None:
    """Return the time of an iteration on the footprint over that of its computation alone.

    Nothing overlaps, which is the upper end: a job that reports its own rates is better known.
    """
    sync_s = all_reduce_s(footprint, size_bytes, links)
    return None if sync_s is None else (compute_s + sync_s) / compute_s
