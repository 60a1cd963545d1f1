"""One stack for all tests of nodes with an agent, a node with room for their jobs, and a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import POOL, SHORT, SHORT_TERMS, Waiting, berth
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.stand import Stand, a_stand


@pytest.fixture(scope="package")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "failslow", "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        terms = [f"{name}={value}" for name, value in SHORT_TERMS.items()]
        berth(stand, "pools", "add", SHORT, "backends=agent", *terms)
        yield stand


@pytest.fixture(scope="package")
def node(stand: Stand) -> Iterator[JoinedNode]:
    with a_joined_node(stand, POOL, "agent-1") as node:
        yield node


@pytest.fixture
def waiting(stand: Stand, node: JoinedNode, tmp_path: Path) -> Waiting:
    return Waiting(stand, node, tmp_path)
