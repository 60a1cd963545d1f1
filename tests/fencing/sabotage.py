"""One rule of placement each, removed: patches that only a test can apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from services.placement.core.lifecycle import ends, leases, nodes
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.state import Pool
from services.placement.silence import Silence
from shared.contracts.nodes import NodeJoined
from shared.contracts.reports import NodesSilent
from shared.contracts.terms import silence_bound_ms

note_silence = leases.note_silence
restate_registration = nodes.restate_registration
conclude = ends.conclude


def same_incarnation(pool: Pool, report: Any) -> bool:
    old = pool.board.nodes.get(report.node_id)
    return old is not None and old.incarnation == report.incarnation


def bound_of_present_terms(self: Pool, node: Node) -> float:
    present = self.terms[-1].of(node.backend).stop_after_s
    assert self.settings is not None
    return silence_bound_ms(self.settings, node.backend, present)


def shortest_bound(self: Pool, node: Node) -> float:
    """Return the bound that a shell with an older fold may have."""
    assert self.settings is not None
    stops = [terms.of(node.backend).stop_after_s for terms in self.terms]
    return min(silence_bound_ms(self.settings, node.backend, stop) for stop in stops)


def of_any_incarnation(pool: Pool, message: NodesSilent, now: int, cause: str) -> Iterator[Any]:
    present = tuple(
        silent.model_copy(update={"incarnation": node.incarnation, "terms_id": node.oldest_terms})
        for silent in message.nodes
        if (node := pool.board.nodes.get(silent.node_id)) is not None
    )
    return note_silence(pool, message.model_copy(update={"nodes": present}), now, cause)


def release_by_the_clock(pool: Pool, now: int) -> Iterator[Any]:
    for node_id, lost_at in list(pool.lost.items()):
        node = pool.board.nodes.get(node_id)
        if node is not None and (node.is_over or now >= lost_at + 30_000):
            yield from leases.as_wake(nodes.release_all(pool, node, now, ""))


def declare_as_powered_off(
    pool: Pool, node: Node, message: Any, now: int, cause: str
) -> Iterator[Any]:
    yield from nodes.lose(pool, node, "declared", now, cause, powered_off=True)


def offer_all_gpus(report: Any, executor_id: str) -> NodeJoined:
    return restate_registration(report, executor_id).model_copy(update={"unusable_gpus": ()})


def conclude_half_a_gang(pool: Pool, job: Job, now: int, cause: str) -> Iterator[Any]:
    held, job.allocations = job.allocations, {} if job.phase == "stopping" else job.allocations
    decisions = list(conclude(pool, job, now, cause))
    job.allocations = held
    return iter(decisions)


def patched(*places: tuple[object, str, object]) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def apply() -> Iterator[None]:
        patches = [patch.object(*place) for place in places]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()

    return apply


SABOTAGES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "R10 generations are not compared": patched((nodes, "is_outdated", same_incarnation)),
    "R11 another machine's registration frees at once": patched(
        (nodes, "is_same_machine", lambda old, registration: True)
    ),
    "R13 counts go on after the log lost records": patched(
        (Silence, "begin_anew", lambda self, at_s: None)
    ),
    "R15 a declared loss releases at once": patched(
        (leases, "declare_lost", declare_as_powered_off)
    ),
    "R16 half a gang is enough to place its job again": patched(
        (ends, "conclude", conclude_half_a_gang)
    ),
    "R20 a GPU with an unkillable worker is offered": patched(
        (nodes, "restate_registration", offer_all_gpus)
    ),
    "R21 lowered terms count at once": patched((Pool, "lost_after_ms", bound_of_present_terms)),
    "R21b applied terms do not begin the count anew": patched(
        (Node, "oldest_terms", property(lambda self: ""))
    ),
    "R21c silence is not compared with raised terms": patched(
        (Pool, "lost_after_ms", shortest_bound)
    ),
    "R22 a wall clock releases": patched((leases, "release_lost", release_by_the_clock)),
    "R23 silence does not name the incarnation": patched(
        (leases, "note_silence", of_any_incarnation)
    ),
}
READER_RULES: dict[str, str] = {
    "R12 silence is judged without reading to the end": "reads_to_end",
    "R14 a new reader begins at the end": "goes_on",
}
"""Rules of the reader -> the argument of `World` that removes it."""
