"""Real agents measure their nodes and the links between them, by the commands of the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.page_blocks import blocks_of, run_block
from tests.e2e.stand import Stand, a_stand
from tests.e2e.test_training import USER

NODES = ("val-0", "val-1", "val-2")
POOL = "gpu"
(BLOCK,) = blocks_of("operations/validation.md")

pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent", "allow_injection=true")
        yield stand


@pytest.fixture(scope="module")
def nodes(stand: Stand) -> Iterator[dict[str, JoinedNode]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(a_joined_node(stand, POOL, name, gpus=1, **USER))
            for name in NODES
        }


def test_a_slowed_node_is_measured_though_it_is_cordoned(
    stand: Stand, nodes: dict[str, JoinedNode]
) -> None:
    slow = NODES[1]
    berth(stand, "inject", "slow", "--node", slow, "--factor", "8", "--for", "10m")
    words = {'"$NODE"': slow, '"$SECOND"': NODES[0], '"$THIRD"': NODES[2], "vision": "ada"}
    printed = run_block(stand, BLOCK, words | {"validate": "validate --json"})
    result = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])["result"]
    assert result["node_ids"] == [slow, NODES[0], NODES[2]]
    assert (result["silent_node_ids"], result["rounds"]) == ([], 3)
    parts = {(part["node_id"], part["part"]): part["ratio"] for part in result["measured"]}
    assert len(parts) == 9, "processor, memory and a link of each"
    processors = {node_id: parts[node_id, "processor"] for node_id in NODES}
    assert max(processors, key=lambda node_id: processors[node_id]) == slow
    assert result["cause"] == "compute"
    assert result["suspect_node_ids"] == [slow]


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
