"""A worker that is slow is not the same as one of which the host is busy. Pure.

Workers are compared by own work without the wait for a processor of their host. That wait alone
makes a suspicion only where it lasts, and where the other workers wait for none: then one host is
busy, or limits its worker, which a move helps. Where they wait too, the hosts are loaded, and a
worker is slow by its wait only if it takes several times as long as they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from services.failslow.core.diagnosis.verdict import Diagnosis, Suspect
from services.failslow.core.measures.peers import SlowWorker, Thresholds, Verdict, Windows, judge

CALM = 0.1
"""Most of the own work of the other workers, as a share, in which they wait for a processor."""
FAR = 3.0
"""Multiple of the others' time, both with the wait for a processor, from which a worker is slow by
that wait though the others are not calm. Equal ranks that share loaded processors get shares of
them that differ less for as long as `LASTING` (`tests/services/failslow/recorded/loaded.json`)."""
LASTING = 8
"""Reports in a row in which one host is busy while the others are calm."""


def judge_with_delays(net: Windows, delays: Windows, limits: Thresholds) -> Verdict:
    """Compare workers without their wait for a processor, then with it.

    A worker that is slow by that wait is in `busy` of the verdict too.
    """
    verdict = judge(net, limits)
    gross = {rank: added(window, delays.get(rank, ())) for rank, window in net.items()}
    if gross == net:
        return verdict
    late = judge(gross, limits)
    apart = _apart(gross, net, late.slow)
    lasting = judge(gross, replace(limits, reports=max(limits.reports, LASTING))).slow
    lasting_apart = apart & _apart(gross, net, lasting)
    busy = {rank: slow for rank, slow in lasting.items() if rank in lasting_apart}
    usual_s = median(delay for rank in delays.keys() & net.keys() for delay in delays[rank])
    return Verdict(
        busy | {rank: among_delayed(slow, usual_s) for rank, slow in verdict.slow.items()},
        tuple(rank for rank in verdict.healthy if rank not in apart),
        frozenset(busy.keys() - verdict.slow.keys()),
    )


def among_delayed(slow: SlowWorker, delay_s: float) -> SlowWorker:
    """Return the figures of a slow worker that waits for a processor as long as the others do.

    On loaded hosts that wait is the larger part of an iteration, so that the gang loses less.
    """
    iteration_s, peers_s = slow.iteration_s + delay_s, slow.peers_s + delay_s
    slowdown = iteration_s / peers_s
    return replace(slow, slowdown=slowdown, iteration_s=iteration_s, peers_s=peers_s)


def added(net: Sequence[float], delays: Sequence[float]) -> tuple[float, ...]:
    """Return own work with the wait for a processor."""
    known = (*delays, *[0.0] * (len(net) - len(delays)))
    return tuple(own_s + delay_s for own_s, delay_s in zip(net, known, strict=False))


def busy_host(
    net: Windows, delays: Windows, node_id: str, rank: int, slow: SlowWorker
) -> Diagnosis:
    """Return the cause of a worker that is slow by its wait for a processor."""
    own, others = delay_share(net[rank], delays[rank]), _others(net, delays, rank)
    text = (
        f"waits for a processor of its host in {own:.0%} of its own work, the other workers in"
        f" {others:.0%}: the host is busy, or limits it"
    )
    suspect = Suspect("node", (rank,), (node_id,), slow.slowdown, slow.score)
    return Diagnosis("compute", (suspect,), suspect.confidence, (text,))


def delay_share(net: Sequence[float], delays: Sequence[float]) -> float:
    """Return the share of own work in which a worker waits for a processor."""
    late_s = sum(delays)
    return late_s / (late_s + sum(net[-len(delays) :])) if late_s else 0.0


def _apart(gross: Windows, net: Windows, slow: Mapping[int, SlowWorker]) -> set[int]:
    """Return the slow workers beside which the others are calm, or which are far from them."""
    delays = {rank: [g - n for g, n in zip(gross[rank], net[rank], strict=True)] for rank in net}
    calm = {rank: delay_share(net[rank], delays[rank]) for rank in net}
    others = [share for rank, share in calm.items() if rank not in slow]
    is_calm = bool(others) and median(others) <= CALM
    return {rank for rank, figures in slow.items() if is_calm or figures.slowdown >= FAR}


def _others(net: Windows, delays: Windows, rank: int) -> float:
    shares = [delay_share(net[other], delays[other]) for other in net if other != rank]
    return median(shares) if shares else 0.0
