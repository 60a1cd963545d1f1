"""The effect of an injected fault on virtual nodes, from its begin to its end."""

from __future__ import annotations

import pytest

from services.executor.core.virtual.effects import WorkerEnded
from services.executor.core.virtual.injected import (
    NO_SLOWDOWN,
    STOPPED_SLOWDOWN,
    NodeSlowdown,
    slowdown_of,
    slowdowns_at,
)
from services.executor.core.virtual.workers import VirtualWorkers
from shared.contracts.injections import FaultInjected, InjectedKind
from tests.services.executor.facts import a_spec, worker_spec

UNTIL = 100_000


def injected(fault: InjectedKind, factor: float = 3.0) -> FaultInjected:
    return FaultInjected(node_id="n2", fault=fault, factor=factor, until=UNTIL)


@pytest.mark.parametrize(
    ("fault", "slowdown"),
    [
        ("slow", NodeSlowdown(work=3.0)),
        ("stop", NodeSlowdown(work=STOPPED_SLOWDOWN)),
        ("link", NodeSlowdown(link=3.0)),
    ],
)
def test_a_fault_has_its_effect_until_its_end(fault: InjectedKind, slowdown: NodeSlowdown) -> None:
    assert slowdowns_at([injected(fault)], UNTIL - 1) == {"n2": slowdown}
    assert slowdowns_at([injected(fault)], UNTIL) == {}


def test_a_flapping_node_is_slow_in_turns() -> None:
    turns = [slowdown_of(injected("flap"), UNTIL - 1 - 10_000 * turn) for turn in range(4)]
    assert turns == [NodeSlowdown(work=3.0), NO_SLOWDOWN, NodeSlowdown(work=3.0), NO_SLOWDOWN]
    assert slowdowns_at([injected("flap")], UNTIL - 15_000) == {}


def a_gang(duration_s: float = 100) -> VirtualWorkers:
    """Two workers on two nodes, which start at 0."""
    workers = VirtualWorkers({})
    for node in ("n1", "n2"):
        spec = worker_spec(
            node, a_spec(duration_s), node=node, world_size=2, gang_nodes=("n1", "n2")
        )
        workers.prepare(spec)
        workers.start(node, 0.0, 1.0)
    return workers


def test_what_is_left_of_a_gang_takes_as_long_as_its_slowest_worker() -> None:
    workers = a_gang()
    workers.inject({"n2": NodeSlowdown(work=3.0)}, 40.0)
    assert workers.due_s("n1") == workers.due_s("n2") == 40 + 60 * 3
    workers.inject({}, 70.0)
    assert workers.due_s("n1") == 70 + 50
    assert workers.take_due(119.9) == []
    assert workers.take_due(120.0) == [WorkerEnded(n, 0, 120_000) for n in ("n1", "n2")]


def test_iterations_follow_the_speed_and_show_the_own_work() -> None:
    workers = a_gang()
    assert [len(t.iteration_s) for t in workers.iterations(4.0)] == [4, 4]
    workers.inject({"n2": NodeSlowdown(work=2.0)}, 4.0)
    times = {t.node_id: t for t in workers.iterations(8.0)}
    assert times["n1"].steps == times["n2"].steps == (4, 5)
    assert (times["n2"].own_s[0] or 0) > 1.8 > 1.2 > (times["n1"].own_s[0] or 0)


def test_a_stopped_node_makes_no_iteration_and_its_gang_goes_on_afterwards() -> None:
    workers = a_gang()
    workers.iterations(10.0)
    workers.inject({"n2": NodeSlowdown(work=STOPPED_SLOWDOWN)}, 10.0)
    assert workers.iterations(500.0) == [] and workers.take_due(500.0) == []
    workers.inject({}, 500.0)
    assert workers.due_s("n1") == pytest.approx(590.0, abs=0.01)
    assert [len(t.iteration_s) for t in workers.iterations(503.1)] == [3, 3]


def test_a_slow_link_lengthens_iterations_and_nobodys_own_work() -> None:
    workers = a_gang()
    workers.inject({"n2": NodeSlowdown(link=5.0)}, 0.0)
    assert workers.due_s("n1") == 200.0
    for times in workers.iterations(8.0):
        assert len(times.steps) == 4
        assert (times.own_s[0] or 0) < 1.1 and (times.wait_s[0] or 0) > 0.8


def test_a_worker_alone_has_no_link_and_others_are_left_alone() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a", a_spec(100), node="n2"))
    workers.start("a", 0.0, 1.0)
    workers.inject({"n2": NodeSlowdown(link=5.0), "n9": NodeSlowdown(work=9.0)}, 1.0)
    assert workers.due_s("a") == 100.0


def test_a_restart_takes_as_long_on_a_slow_node() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a", a_spec(100), node="n2", restart_s=20.0))
    workers.start("a", 0.0, 1.0)
    workers.inject({"n2": NodeSlowdown(work=2.0)}, 5.0)
    assert workers.due_s("a") == 20 + 200
