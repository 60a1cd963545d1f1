"""The cases that every backend of an executor has to pass; the page docs/backends.md is its result.

A case that a backend cannot have is skipped with the reason, and not with less.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import MANIFESTS
from infra.ray.cluster import RayCluster
from infra.slurm.cluster import GPUS, NODES, SlurmCluster
from shared.contracts.nodes import NodeLost
from shared.contracts.reports import (
    Heartbeats,
    NodeRegistered,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
)
from tests import real_clusters
from tests.services.executor.conformance.agent_stage import AgentStage
from tests.services.executor.conformance.kubernetes_stage import KubernetesStage
from tests.services.executor.conformance.ray_stage import RayStage
from tests.services.executor.conformance.stages import EngineStage, SlurmStage, Stage, VirtualStage
from tests.services.executor.facts import started

pytestmark = [pytest.mark.process, pytest.mark.parts]
BACKENDS = ("agent", "virtual", "slurm", "kubernetes", pytest.param("ray", marks=pytest.mark.long))
LONG = "echo begun; sleep 300"


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    with real_clusters.slurm_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[KubernetesCluster]:
    with real_clusters.kubernetes_cluster() as running:
        running.apply((MANIFESTS / "executor.yaml").read_text())
        running.apply((MANIFESTS / "admission.yaml").read_text())
        yield running


@pytest.fixture(scope="module")
def ray() -> Iterator[RayCluster]:
    with real_clusters.ray_cluster() as running:
        yield running


@pytest.fixture(params=BACKENDS)
async def stage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    made: Stage
    if request.param == "slurm":
        running: SlurmCluster = request.getfixturevalue("slurm")
        monkeypatch.setenv("SLURM_CONF", running.environment["SLURM_CONF"])
        made = SlurmStage(tmp_path, running)
    elif request.param == "kubernetes":
        made = KubernetesStage(tmp_path, request.getfixturevalue("kubernetes"))
    elif request.param == "ray":
        made = RayStage(tmp_path, request.getfixturevalue("ray"))
    elif request.param == "agent":
        made = AgentStage(tmp_path)
    else:
        made = VirtualStage(tmp_path)
    await made.serving()
    yield made
    await made.clean()


def of_engine(stage: Stage) -> EngineStage:
    stage.needs("engine")
    assert isinstance(stage, EngineStage)
    return stage


async def test_nodes_join_with_what_they_have(stage: Stage) -> None:
    joined = {report.node_id: report for report in stage.reports(NodeRegistered)}
    assert set(joined) == set(NODES)
    assert {report.gpus for report in joined.values()} == {GPUS}
    assert {report.backend for report in joined.values()} == {stage.BACKEND}
    await stage.until(lambda: bool(stage.messages("heartbeats", Heartbeats)))


async def test_no_worker_starts_before_all_are_ready(stage: Stage) -> None:
    spec = stage.spec("echo ran", workers=3)
    place = stage.place("j1", spec, ("g2", [0]), ("g1", [0]), ("g1", [1]))
    ready = await stage.wait_for(WorkerReady, 3)
    assert {r.allocation_id for r in ready} == {f"{place}/{rank}" for rank in range(3)}
    await asyncio.sleep(0.5)
    assert stage.reports(WorkerExited) == [] and stage.printed() == []


async def test_a_gang_ends_with_its_exit_codes(stage: Stage) -> None:
    place = await stage.begin("j1", stage.spec("exit 0", workers=2), ("g1", [0]), ("g2", [0]))
    ends = await stage.exits(2)
    assert {end.exit_code for end in ends.values()} == {0}
    stage.release("j1", place, 0, "g1")
    stage.release("j1", place, 1, "g2")
    place = await stage.begin("j2", stage.spec("exit 3", code=3), ("g1", [0]))
    ends = await stage.exits(3)
    assert ends[f"{place}/0"].exit_code == 3


async def test_a_failed_program_is_reported_with_reason_and_last_lines(stage: Stage) -> None:
    stage.needs("programs")
    await stage.begin("j1", stage.spec("echo sorry; exit 4"), ("g1", [0]))
    [end] = (await stage.exits(1)).values()
    assert (end.exit_code, end.reason, end.output) == (4, "exit_code", ("sorry",))
    absent = stage.spec("").model_copy(update={"command": ("no-such-program",)})
    if "late checks" in stage.LACKS:
        stage.place("j2", absent, ("g1", [0]))
        [refused] = await stage.wait_for(WorkerRefused)
        assert (refused.reason, refused.permanent) == ("command_missing", True)
        return
    await stage.begin("j2", absent, ("g1", [0]))
    end = list((await stage.exits(2)).values())[1]
    assert (end.exit_code, end.reason, end.permanent) == (127, "command_missing", True)


async def test_one_failed_worker_ends_its_gang(stage: Stage) -> None:
    """By placement's order to stop the others, or by the engine, which knows the gang."""
    stage.needs("programs")
    script = '[ "$RANK" = 1 ] && exit 5; sleep 300'
    place = await stage.begin("j1", stage.spec(script, workers=2), ("g1", [0]), ("g2", [0]))
    if "ends gangs" in stage.LACKS:
        ends = await stage.exits(1)
        stage.request_stop("j1")
        [stopped] = await stage.stops(1)
        assert stopped.allocation_id == f"{place}/0"
    else:
        ends = await stage.exits(2)
    assert ends[f"{place}/1"].exit_code == 5
    assert next(iter(ends)) == f"{place}/1", "the first end is the one to blame"


async def test_workers_get_rank_rendezvous_and_gpus(stage: Stage) -> None:
    stage.needs("programs")
    script = (
        "echo $RANK $WORLD_SIZE $LOCAL_RANK $BERTH_NODE_ID $BERTH_NODE_RANK $BERTH_LOCAL_RANK"
        " $BERTH_ATTEMPT $MASTER_ADDR $CHOSEN; echo $MASTER_PORT; echo $" + stage.GPUS_VARIABLE
    )
    spec = stage.spec(script, workers=3, env={"CHOSEN": "a 'b'"})
    await stage.begin("j1", spec, ("g2", [0, 1]), ("g1", [0, 1]), ("g1", [2, 3]))
    await stage.exits(3)
    await stage.until(lambda: all(len(stage.printed(rank)) == 3 for rank in range(3)))
    assert stage.printed(0)[0] == f"0 3 0 g2 0 0 1 {stage.ADDRESS} a 'b'"
    assert stage.printed(1)[0] == f"1 3 0 g1 1 0 1 {stage.ADDRESS} a 'b'"
    assert stage.printed(2)[0] == f"2 3 0 g1 1 1 1 {stage.ADDRESS} a 'b'"
    assert len({stage.printed(rank)[1] for rank in range(3)}) == 1
    first, second = (set(stage.printed(rank)[2].split(",")) for rank in (1, 2))
    assert len(first) == len(second) == 2 and not first & second


async def test_output_is_relayed_while_it_comes_and_to_its_last_line(stage: Stage) -> None:
    stage.needs("programs")
    await stage.begin("j1", stage.spec(LONG), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    place = await stage.begin("j2", stage.spec("seq 2000"), ("g2", [0]))
    await stage.exits(1)
    stage.release("j2", place, 0, "g2")
    await stage.until(lambda: "2000" in stage.printed())


async def test_a_stop_gives_a_grace_and_then_kills(stage: Stage) -> None:
    stage.needs("programs")
    polite = "trap 'echo asked; exit 0' TERM; echo begun; while :; do sleep 0.1; done"
    await stage.begin("j1", stage.spec(polite), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    stage.request_stop("j1")
    [stopped] = await stage.stops(1)
    assert stopped.exit_code == 0
    await stage.until(lambda: "asked" in stage.printed())
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"
    await stage.begin("j2", stage.spec(deaf), ("g2", [0]))
    await stage.until(lambda: "deaf" in stage.printed())
    stage.request_stop("j2")
    await stage.until(lambda: any(stop.job_id == "j2" for stop in stage.reports(WorkerStopped)))
    stopped = stage.reports(WorkerStopped)[-1]
    assert stopped.exit_code == 137


async def test_a_running_gang_stops_as_a_whole(stage: Stage) -> None:
    spec = stage.spec(LONG, workers=2, seconds=300)
    place = await stage.begin("j1", spec, ("g1", [0]), ("g2", [0]))
    stage.request_stop("j1")
    stopped = await stage.stops(2)
    assert {r.allocation_id for r in stopped} == {f"{place}/0", f"{place}/1"}


async def test_what_is_stopped_before_its_start_never_runs(stage: Stage) -> None:
    """A gang of several: an agent starts a single worker once its readiness is durable."""
    stage.place("j1", stage.spec("echo ran", workers=2), ("g1", [0]), ("g2", [0]))
    await stage.wait_for(WorkerReady, 2)
    stage.request_stop("j1")
    stopped = await stage.stops(2)
    assert [worker.exit_code for worker in stopped] == [None, None]
    assert stage.printed() == [] and stage.printed(1) == []


async def test_a_program_ends_at_its_walltime(stage: Stage) -> None:
    spec = stage.spec("sleep 300", seconds=300, walltime_s=1.0)
    await stage.begin("j1", spec, ("g1", [0]))
    [end] = (await stage.exits(1)).values()
    assert (end.exit_code, end.reason) == (143, "walltime")


async def test_a_start_that_cannot_work_is_refused_with_a_reason(stage: Stage) -> None:
    stage.place("j1", stage.spec("true"), ("g1", [GPUS + 3]), ("g1", [0]))
    if stage.BACKEND == "virtual":
        [refused] = await stage.wait_for(WorkerRefused, 1)
        assert refused.reason.startswith("no_such_gpu")
        return
    secret = stage.spec("true", env={"TOKEN": "secret://token"})
    stage.place("j2", secret, ("g1", [0]))
    await stage.until(lambda: any(r.job_id == "j2" for r in stage.reports(WorkerRefused)))
    refused = next(r for r in stage.reports(WorkerRefused) if r.job_id == "j2")
    assert refused.reason == stage.REFUSED and refused.permanent


async def test_a_killed_executor_leaves_no_worker_unknown(stage: Stage) -> None:
    """Where workers outlive it they go on; else they are reported stopped, and wait again."""
    await stage.begin("j1", stage.spec(LONG, seconds=300), ("g1", [0]))
    await stage.crash()
    stage.start()
    if "outlives" in stage.LACKS:
        await stage.stops(1)
        return
    await stage.until(lambda: stage.printed() == ["begun"])
    stage.request_stop("j1")
    [stopped] = await stage.stops(1)
    assert stopped.exit_code is not None and len(stage.reports(NodeRegistered)) == len(NODES)


async def test_a_lost_node_ends_its_workers_and_joins_anew(stage: Stage) -> None:
    place = await stage.begin("j1", stage.spec(LONG, seconds=300), ("g1", [0]))
    if "programs" not in stage.LACKS:
        await stage.until(lambda: stage.printed() == ["begun"])
    incarnation = next(r for r in stage.reports(NodeRegistered) if r.node_id == "g1").incarnation
    stage.write(NodeLost(node_id="g1", incarnation=incarnation, reason="declared"))
    if "reports lost" not in stage.LACKS:
        await stage.wait_for(WorkerExited, 1)
        stage.release("j1", place, 0, "g1")
    await stage.wait_for(NodeRegistered, len(NODES) + 1)
    again = stage.reports(NodeRegistered)[-1]
    assert again.node_id == "g1" and again.incarnation != incarnation
    if isinstance(stage, AgentStage):
        assert not stage.has_living("g1")


async def test_an_executor_killed_right_after_a_submit_finds_the_job_again(stage: Stage) -> None:
    engine = of_engine(stage)
    stage.place("j1", stage.spec("true"), ("g1", [0]))
    await stage.until(lambda: len(engine.refs()) == 1)
    [ref] = engine.refs()
    await stage.crash()
    stage.start()
    await stage.wait_for(WorkerReady)
    assert engine.refs() == [ref], "known by its name, and not submitted again"


async def test_two_executors_run_a_gang_once(stage: Stage) -> None:
    engine = of_engine(stage)
    other = engine.second()
    other.start(executor_id="e2")
    place = await stage.begin("j1", stage.spec("echo ran; sleep 1"), ("g1", [0]))
    await stage.wait_for(WorkerExited)
    await stage.until(lambda: bool(stage.printed()))
    await other.crash()
    assert engine.runs_of(place) == 1


async def test_a_controller_killed_right_after_a_submit_runs_the_gang_once(stage: Stage) -> None:
    """It may have lost the job, or know it as it was before: a gang is known by its name."""
    engine = of_engine(stage)
    place = stage.place("j1", stage.spec("echo ran; sleep 1"), ("g1", [0]))
    await stage.until(lambda: bool(engine.refs()))
    engine.kill_controller()
    ready = await stage.wait_for(WorkerReady)
    stage.write(started("j1").model_copy(update={"master_port": ready[0].master_port}))
    await stage.wait_for(WorkerExited)
    assert engine.runs_of(place) == 1


async def test_a_requeue_by_the_engine_is_noticed_and_runs_nothing_twice(stage: Stage) -> None:
    stage.needs("engine", "requeue")
    assert isinstance(stage, SlurmStage)
    place = await stage.begin("j1", stage.spec("echo ran; sleep 300"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["ran"])
    [ref] = stage.refs()
    stage.cluster.run("scontrol", "update", f"jobid={ref}", "requeue=1")
    stage.cluster.run("scontrol", "requeue", ref)
    [end] = await stage.wait_for(WorkerExited)
    assert end.reason == "step_lost"
    assert stage.runs_of(place) == 1


async def test_a_drain_of_the_engine_keeps_new_work_off(stage: Stage) -> None:
    engine = of_engine(stage)
    stage.needs("drains")
    engine.drain("g3")
    try:
        await stage.until(lambda: bool(stage.problems()))
        [problem, *_] = stage.problems()
        assert (problem.node_id, problem.problem) == ("g3", "engine_drained")
        assert problem.detail == engine.DRAINED
    finally:
        engine.resume("g3")


async def test_work_of_others_is_counted_and_named(stage: Stage) -> None:
    engine = of_engine(stage)
    stage.needs("shared nodes")
    owner, _ = await engine.occupy("g3", 2)
    await stage.wait_for(NodeRegistered, len(NODES) + 1)
    report = stage.reports(NodeRegistered)[-1]
    assert (report.node_id, report.unusable_gpus) == ("g3", (0, 1))
    assert report.labels["berth.occupied"] == f"GPUs 0,1: {owner}"


async def test_gpus_are_read_back_from_the_engine(stage: Stage) -> None:
    """Their indices cannot be chosen: placement counts them, and the program sees the real ones."""
    engine = of_engine(stage)
    stage.needs("own indices")
    _, taken = await engine.occupy("g1", 1)
    await stage.wait_for(NodeRegistered, len(NODES) + 1)
    stage.admit(stage.reports(NodeRegistered)[-1:])
    await stage.begin("j1", stage.spec(f"echo ${stage.GPUS_VARIABLE}"), ("g1", [1, 2]))
    await stage.exits(1)
    await stage.until(lambda: bool(stage.printed()))
    seen = set(stage.printed()[0].split(","))
    assert len(seen) == 2 and len(taken) == 1 and not seen & taken


async def test_a_gang_that_the_engine_lets_wait_is_refused_with_its_reason(stage: Stage) -> None:
    engine = of_engine(stage)
    stage.needs("queue")
    await engine.hold_back()
    before = engine.refs()
    stage.place("j2", stage.spec("true"), ("g1", [0]))
    [refused] = await stage.wait_for(WorkerRefused)
    reason, words = engine.WAITS
    assert refused.job_id == "j2" and refused.reason == reason
    assert words in refused.detail
    assert engine.refs() == before


async def test_a_gpu_is_free_only_after_the_engine_has_completed(stage: Stage) -> None:
    """A worker that outlives its job in the engine for a while holds its GPU."""
    engine = of_engine(stage)
    stage.needs("other users")
    await stage.begin("j1", stage.spec("echo begun; sleep 1"), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    engine.freeze("g1")
    try:
        [ref] = engine.refs()
        await engine.cancel(ref)
        await asyncio.sleep(1.5)
        assert stage.reports(WorkerExited) == []
    finally:
        engine.thaw("g1")
    await stage.wait_for(WorkerExited)


async def test_a_zombie_on_a_node_that_the_engine_gave_up_keeps_its_gpus(stage: Stage) -> None:
    engine = of_engine(stage)
    stage.needs("gives up")
    await stage.begin("j1", stage.spec(LONG), ("g1", [0]))
    await stage.until(lambda: stage.printed() == ["begun"])
    engine.freeze("g1")
    try:
        await engine.give_up("g1")
        await asyncio.sleep(1.0)
        assert stage.reports(WorkerExited) == [] and stage.reports(WorkerStopped) == []
    finally:
        engine.thaw("g1")
        engine.resume("g1")
    [end] = await stage.wait_for(WorkerExited)
    assert end.reason == engine.ZOMBIE
