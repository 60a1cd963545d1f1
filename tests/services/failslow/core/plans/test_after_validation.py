from __future__ import annotations

import pytest

from services.failslow.core.plans.after_validation import nodes_to_leave
from shared.contracts.faults import FaultyPart
from shared.contracts.validation import NodesValidated


@pytest.mark.parametrize(
    ("part", "nodes"), [("node", ("n1", "n2")), ("gpu", ("n1", "n2")), ("link", ("n1",)), ("", ())]
)
def test_of_a_link_one_end_is_enough(part: FaultyPart, nodes: tuple[str, ...]) -> None:
    suspects = ("n1", "n2") if part else ()
    verdict = NodesValidated(
        job_id="v1",
        tenant="a",
        attempt=1,
        node_ids=(),
        rounds=2,
        part=part,
        suspect_node_ids=suspects,
    )
    assert nodes_to_leave(verdict) == nodes
