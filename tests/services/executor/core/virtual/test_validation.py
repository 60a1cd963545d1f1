"""Virtual nodes are measured by the speed of their model."""

from __future__ import annotations

from services.executor.core.virtual.injected import NodeSlowdown
from services.executor.core.virtual.validation import RUNS_S
from services.executor.core.virtual.workers import VirtualWorkers
from shared.contracts.validation import FIRST_GPU, FIRST_LINK, MEMORY, PROCESSOR
from tests.services.executor.facts import a_spec, worker_spec


def test_a_validation_measures_by_the_speed_of_its_nodes_on_any_time_scale() -> None:
    names = ("n1", "n2", "n3")
    spec = a_spec(None, workers=3).model_copy(update={"validates": names})
    workers = VirtualWorkers({"n2": 2.0})
    workers.inject({"n3": NodeSlowdown(link=4.0)}, 0.0)
    for rank, node in enumerate(names):
        own = worker_spec(node, spec, node=node, world_size=3, gang_nodes=names)._replace(rank=rank)
        workers.prepare(own)
        workers.start(node, 0.0, 600.0)
    n1, n2, n3 = (
        dict(zip(times.steps, times.iteration_s, strict=True)) for times in workers.iterations(1.0)
    )
    assert 1.9 < n2[PROCESSOR] / n1[PROCESSOR] < 2.1
    assert 1.9 < n2[FIRST_GPU] / n1[FIRST_GPU] < 2.1
    assert 0.9 < n3[MEMORY] / n1[MEMORY] < 1.1
    links = n1[FIRST_LINK + 1], n2[FIRST_LINK + 2], n3[FIRST_LINK]
    assert links[1] / links[0] > 3.9 < links[2] / links[0]
    assert workers.next_due_s == RUNS_S
