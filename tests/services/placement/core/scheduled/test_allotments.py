"""Proposals as allotments: workers of whole gangs, and nodes where they were chosen for it."""

from __future__ import annotations

from services.placement.core.pool.schedule import Allotted
from services.placement.core.scheduled.allot import PROPOSAL_MS
from services.placement.core.scheduled.allotments import (
    bytes_of,
    of_job,
    still_allotted,
    workers_by_node,
)
from shared.contracts.proposals import ProposedGpus, ProposedNode
from shared.contracts.schedules import GpusAllotted
from tests.services.placement.core.lane import job, only
from tests.services.placement.core.scheduled.choosing import choosing, two_nodes
from tests.services.placement.core.scheduled.pools import next_round


def proposed(*gpus: int) -> ProposedGpus:
    nodes = tuple(ProposedNode(node_id=f"n{at}", gpus=count) for at, count in enumerate(gpus))
    return ProposedGpus(job_id="one", gpu_type="a100", gpus=sum(gpus), nodes=nodes)


def test_workers_by_node_are_whole_and_all_of_the_gang() -> None:
    pool = two_nodes()
    pool.submit(job("one", 2, workers=2))
    shape = pool.job("one").shape
    assert workers_by_node(shape, proposed(2, 2), 2) == (("n0", 1), ("n1", 1))
    assert workers_by_node(shape, proposed(3, 1), 2) == ()
    assert workers_by_node(shape, proposed(2), 2) == ()


def test_a_proposal_that_is_kept_moves_no_job_that_has_started() -> None:
    with choosing(one=(("a", 2),), two=(("b", 4),)):
        pool = two_nodes()
        pool.run(job("one", 2))
        pool.proposes = False
        next_round(pool)
        assert [own.nodes for own in still_allotted(pool.state)] == [()]
        (event,) = only(GpusAllotted, pool.feed(after_ms=PROPOSAL_MS))
    assert (event.kept, event.allotted[0].nodes) == ("late", ())


def test_nodes_count_among_the_bytes_of_a_record() -> None:
    alone = of_job("one", Allotted("a100", 2))
    spread = of_job("one", Allotted("a100", 2, (("node-1", 1), ("node-2", 1))))
    assert bytes_of(spread) - bytes_of(alone) == 2 * (len("node-1") + 48)
