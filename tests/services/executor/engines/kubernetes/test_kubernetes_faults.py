"""Faults of a real API server: credentials that it does not take, and a node that has less."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import ADMIN, EXECUTOR
from infra.kubernetes.image import IMAGE
from services.executor.core.engines.contract import (
    EngineNode,
    EnginePhase,
    Forget,
    GangProgress,
    Kill,
    NoteLost,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.names import gang_name
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S, until
from tests.services.executor.engines.kubernetes.real_api import NAMESPACE, pods_of, seen

pytestmark = [pytest.mark.process, pytest.mark.parts]


async def test_without_credentials_nothing_is_concluded_and_new_ones_are_taken_at_once(
    cluster: KubernetesCluster, gang: EngineGang, tmp_path: Path
) -> None:
    valid = cluster.kubeconfig(EXECUTOR).read_text()
    config = tmp_path / "kubeconfig"
    config.write_text(valid)
    api = KubernetesApi(access_of(config))
    engine = KubernetesEngine(api, "berth", lambda tenant: NAMESPACE, PodOptions(IMAGE))
    task = asyncio.create_task(engine.run(lambda: None))
    try:
        await until(lambda: not any(w.problem for w in (engine.nodes, engine.pods, engine.records)))
        config.write_text(valid.replace(f"token: {EXECUTOR}", "token: expired"))
        with pytest.raises(EngineAway, match="Unauthorized"):
            await engine.act(Submit(gang))
        assert pods_of(cluster, gang) == []
        config.write_text(valid)
        assert await engine.act(Submit(gang)) is None
        assert await seen(engine, gang, 3) is EnginePhase.RUNNING
    finally:
        task.cancel()
        await asyncio.wait([task])


def restore(cluster: KubernetesCluster, etcd: Path, copy: Path) -> None:
    """Kill the control plane, copy the data of etcd from one folder to another, and start it."""
    for name in ("apiserver", "etcd"):
        cluster.signal(name, SIGKILL)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(etcd, copy)
    cluster.start_control_plane()


async def test_a_gang_that_the_control_plane_forgot_is_seen_to_be_gone_and_submitted_again(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, tmp_path: Path
) -> None:
    """Its versions begin again below those that the watches have seen."""
    etcd, before = cluster.folder / "etcd", tmp_path / "before"
    await asyncio.to_thread(restore, cluster, etcd, before)
    await until(lambda: not any(w.problem for w in (engine.nodes, engine.pods, engine.records)))
    await submitted(engine, gang)
    await asyncio.to_thread(restore, cluster, before, etcd)
    await seen(engine, gang, 0)
    await submitted(engine, gang)
    assert len(pods_of(cluster, gang)) == 3


async def test_a_gang_that_had_begun_before_a_restore_is_noted_as_lost_and_never_bound(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, tmp_path: Path
) -> None:
    etcd, before = cluster.folder / "etcd", tmp_path / "before"
    await submitted(engine, gang)
    await asyncio.to_thread(restore, cluster, etcd, before)
    name = gang_name(gang.identity)
    async with asyncio.timeout(PATIENCE_S):
        while not all(pod["spec"].get("nodeName") for pod in pods_of(cluster, gang)):
            with suppress(EngineAway):
                await engine.act(Start(gang, name))
            await asyncio.sleep(0.1)
    await asyncio.to_thread(restore, cluster, before, etcd)
    async with asyncio.timeout(PATIENCE_S):
        while not (progress := await progress_of(engine, gang)).settle_s:
            with suppress(EngineAway):
                await engine.act(NoteLost(gang))
            await asyncio.sleep(0.1)
    assert progress.is_begun and not progress.needs_start
    await engine.act(Start(gang, name))
    assert not any(pod["spec"].get("nodeName") for pod in pods_of(cluster, gang))
    await engine.act(Kill(name))
    await seen(engine, gang, 0)
    [over] = (await engine.observe([gang.identity])).jobs_of(gang.identity)
    assert over.phase is EnginePhase.ENDED and over.lost_node
    await engine.act(Submit(gang))
    assert pods_of(cluster, gang) == []
    await engine.act(Forget(over.ref))


async def progress_of(engine: KubernetesEngine, gang: EngineGang) -> GangProgress:
    """Return what the engine shows of a gang, nothing while it is away."""
    with suppress(EngineAway):
        return (await engine.observe([gang.identity])).progress[gang.identity]
    return GangProgress()


async def submitted(engine: KubernetesEngine, gang: EngineGang) -> None:
    """Submit a gang, again while the API is away, until its pods are seen."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                assert await engine.act(Submit(gang)) is None
            except EngineAway:
                await asyncio.sleep(0.1)
                continue
            break
    assert await seen(engine, gang, 3) is EnginePhase.RUNNING


async def test_a_node_that_has_fewer_gpus_than_before_is_described_anew(
    cluster: KubernetesCluster, engine: KubernetesEngine
) -> None:
    path = "/api/v1/nodes/shrinks"
    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "shrinks"}}, ADMIN)
    ready = {"type": "Ready", "status": "True", "reason": "r", "message": "m"}

    def offer(gpus: int) -> None:
        has: dict[str, Any] = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": str(gpus)}
        status = {"capacity": has, "allocatable": has, "conditions": [ready]}
        cluster.patch(f"{path}/status", {"status": status})

    async def described(gpus: int) -> EngineNode:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                nodes = (await engine.observe([])).nodes
                if "shrinks" in nodes and nodes["shrinks"].gpus == gpus:
                    return nodes["shrinks"]
                await asyncio.sleep(0.05)

    try:
        offer(4)
        assert (await described(4)).responds
        offer(3)
        assert (await described(3)).responds
    finally:
        cluster.request("DELETE", path, None, ADMIN)
