"""An executor that speaks the contract, and a node that is connected to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, a_node


@pytest.fixture
def double() -> Iterator[ExecutorDouble]:
    double = ExecutorDouble()
    yield double
    double.close()


@pytest.fixture
def node(double: ExecutorDouble) -> Iterator[NodeBench]:
    with a_node(double) as node:
        yield node
