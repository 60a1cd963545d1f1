"""A recorded session, played back to its agent and to its executor: nothing happens twice."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos.nodes.ticks import read_uses
from infra.supervisor.stack import AGENT_EXECUTOR
from tests.e2e.stand import Stand, eventually
from tests.fencing.pool import Pool, is_alive, lose, step_of
from tests.fencing.recording import Json, a_recorder

pytestmark = [pytest.mark.parts, pytest.mark.stack]


def test_a_session_that_is_played_back_starts_stops_and_frees_nothing(
    stand: Stand, pool: Pool
) -> None:
    executor = f"http://127.0.0.1:{stand.stack.ports[AGENT_EXECUTOR]['http']}"
    with a_recorder(executor) as recorder, pool.node("1", recorder.url) as node:
        kept, cancelled = pool.submit(), pool.submit()
        for job_id in (kept, cancelled):
            pool.ticks(job_id)
        [held], [gone] = node.workers_of(kept), node.workers_of(cancelled)
        pool.cancel(cancelled)
        eventually(lambda: not node.folder(gone).exists())
        orders, sent = recorder.orders(), recorder.sent()
        kinds = {order["kind"] for answer in orders for order in answer["orders"]}
        assert {"joined", "prepare", "go", "stop"} <= kinds
        assert {"registration", "ready", "stopped"} <= {
            report["kind"] for exchange in sent for report in exchange.request.get("reports", ())
        }
        step = node.step(held)
        for played in (only_starts(orders), orders):
            recorder.play(played)
            assert not node.folder(gone).exists()
        recorder.repeat(sent)
        second = pool.submit()
        pool.ticks(second)
        assert is_alive(step) and node.status()["generation"] == 1

        # The next incarnation is not the one that these orders and reports are of.
        lose(stand, node.node_id, "--reason", "test")
        for job_id in (kept, second):
            pool.ticks(job_id, attempt=2)
        steps = [step_of(node, job_id) for job_id in (kept, second)]
        for played in (only_starts(orders), orders):
            recorder.play(played)
            assert not node.folder(gone).exists() and not node.folder(held).exists()
        recorder.repeat(sent)
        pool.cancel(second)
        last = pool.submit()
        pool.ticks(last)
        assert is_alive(steps[0])
        eventually(lambda: not is_alive(steps[1]))
        assert node.status()["generation"] == 2
        pool.end()
        for job_id, attempt in ((kept, 2), (last, 1)):
            row = stand.ended(job_id)
            assert (row["phase"], row["attempt"]) == ("succeeded", attempt)
    runs = {use.run for use in read_uses(pool.folder)}
    assert runs == {(kept, 1), (kept, 2), (cancelled, 1), (second, 1), (second, 2), (last, 1)}


def only_starts(answers: list[Json]) -> list[Json]:
    """Return the orders without those that end a worker again."""
    return [
        {**answer, "orders": [o for o in answer["orders"] if o["kind"] in ("prepare", "go")]}
        for answer in answers
    ]
