"""The process around an executor: inventory, broker, telemetry, signals."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from services.executor.agents.server import AgentServer
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.nodes import parse_tolerations
from services.executor.core.ray.submission import RayOptions
from services.executor.core.slurm.submission import SlurmOptions
from services.executor.core.virtual.inventory import InventoryNode, parse_inventory
from services.executor.engines.engine import Engine
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from services.executor.engines.kubernetes.pod_intake import PodIntake
from services.executor.engines.ray.api import RayApi
from services.executor.engines.ray.ray import RayEngine
from services.executor.engines.server import EngineServer
from services.executor.engines.slurm.commands import SlurmCommands
from services.executor.engines.slurm.slurm import SlurmEngine
from services.executor.engines.slurm.users import is_root
from services.executor.settings import ExecutorSettings
from services.executor.virtual.server import VirtualServer
from shared.bus.archive.opening import with_archive
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.process.heap import settle_heap
from shared.process.settings import BadSettings
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import start_telemetry
from shared.telemetry.upkeep import run_upkeep

DAY_S = 86_400
GANGS_AT_ONCE = 16
"""Gangs of Kubernetes that are submitted, started or ended at a time."""


async def serve(settings: ExecutorSettings) -> None:
    """Serve until SIGTERM or SIGINT: an inventory, or agents or an engine, which outlive it."""
    telemetry = start_telemetry("executor", settings)
    executor = _executor(settings, telemetry.metrics)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    telemetry.metrics.watch_disk(settings.data)
    endpoint = telemetry.metrics.serve(
        settings.metrics_port, executor.health, settings.metrics_host
    )
    upkeep_task = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    settle_heap()
    try:
        await executor.run(stop)
    finally:
        upkeep_task.cancel()
        endpoint.close()
        telemetry.spans.shutdown()


def _executor(
    settings: ExecutorSettings, metrics: Metrics
) -> VirtualServer | AgentServer | EngineServer:
    if settings.nodes is None:
        if settings.slurm_pool and settings.slurm_folder is not None:
            engine: Engine = _slurm(settings, settings.slurm_folder)
            return EngineServer(
                settings, settings.slurm_pool, engine, lambda: _connect(settings), metrics
            )
        if settings.kubernetes_pool:
            return kubernetes_server(settings, lambda: _connect(settings), metrics)
        if settings.ray_pool and settings.ray_folder is not None:
            options = RayOptions(settings.ray_address, settings.ray_stop_after_s)
            api = RayApi(settings.ray_address, settings.ray_token_file)
            engine = RayEngine(api, settings.ray_folder, options)
            return EngineServer(
                settings, settings.ray_pool, engine, lambda: _connect(settings), metrics
            )
        return AgentServer(settings, lambda: _connect(settings), metrics)
    nodes = _inventory(settings.nodes)
    return VirtualServer(settings, nodes, lambda: _connect(settings), metrics)


def _slurm(settings: ExecutorSettings, folder: Path) -> SlurmEngine:
    partition = settings.slurm_partition

    def options_of(tenant: str) -> SlurmOptions:
        user, account = settings.slurm_user_of(tenant), settings.slurm_account_of(tenant)
        return SlurmOptions(partition, user, account, settings.slurm_qos)

    users = settings.slurm_users_named
    for user in users:
        if is_root(user):
            raise BadSettings(f"BERTH_SLURM_USERS: {user!r} is root, as which no job runs")
    commands = SlurmCommands(settings.slurm_commands)
    keep_s = None if settings.slurm_keep_d is None else settings.slurm_keep_d * DAY_S
    return SlurmEngine(
        commands, folder, partition, options_of, os.geteuid(), users, settings.slurm_hooks, keep_s
    )


def kubernetes_server(
    settings: ExecutorSettings, connect: Callable[[], Log], metrics: Metrics
) -> EngineServer:
    """Return an executor whose pool Kubernetes runs; it serves pods of users where they are set."""
    options = PodOptions(
        settings.kubernetes_image,
        settings.kubernetes_network,
        settings.kubernetes_priority_class,
        parse_tolerations(settings.kubernetes_tolerations),
        settings.kubernetes_disk_gib,
    )
    api = KubernetesApi(access_of(settings.kubernetes_config))
    engine = KubernetesEngine(
        api,
        settings.kubernetes_namespace,
        settings.kubernetes_namespace_of,
        options,
        settings.kubernetes_nodes,
    )
    intake = PodIntake(settings, api, engine.pods, connect, metrics)
    beside = intake.run if settings.kubernetes_pods else None
    pool = settings.kubernetes_pool
    return EngineServer(settings, pool, engine, connect, metrics, beside, GANGS_AT_ONCE)


def _connect(settings: ExecutorSettings) -> Log:
    return with_archive(
        KafkaLog(settings.connection, client=f"executor-{settings.executor_id}"), settings.archive
    )


def _inventory(path: Path) -> tuple[InventoryNode, ...]:
    try:
        return parse_inventory(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSettings(f"BERTH_NODES: {error}") from None
