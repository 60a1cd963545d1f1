"""The same pods placed by kube-scheduler and by Berth, on a real API server with nodes of kwok.

Each of them has a cluster of its own, one after the other. First gangs are created that all fit,
and the time until the last pod has a node is taken; then these are removed. Last, two gangs are
created pod by pod in turn, of which either fits and both together do not.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.kubernetes.fake_cluster import FakeCluster, fake_cluster
from benchmarks.parts.kubernetes.figures import (
    BERTH,
    DEFAULT,
    UNLIMITED,
    gang_figures,
    judge,
    render,
    speed_figures,
)
from benchmarks.parts.kubernetes.gangs import PodGang, PodWatch, interleaved, watched_pods
from benchmarks.parts.kubernetes.requests import AuditLog
from benchmarks.parts.kubernetes.systems import System, berth, kube_scheduler
from benchmarks.parts.result import finish
from infra.kubernetes import build
from infra.kubernetes.control_plane import ADMIN
from infra.machine.process import DidNotStart
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

SYSTEMS = (DEFAULT, UNLIMITED, BERTH)
UNLIMITED_PER_S = 5000.0
PROBE = PodGang("probe", 1, 1)
PROBE_S = 120.0
SETTLE_S = 1.0
"""Time after the last binding in which conditions and events of it are still written."""


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """The defaults are those of the published figures."""

    nodes: int = 1000
    gpus: int = 8
    """Of each node."""
    gangs: int = 250
    workers: int = 8
    """Pods of a gang, of one GPU each."""
    broker: Broker = "embedded"
    limit_s: float = 300.0
    """Longest time for one step."""
    quiet_s: float = 10.0
    """Two gangs that get no more nodes for so long have come to rest."""
    only: str = ""
    """Systems to measure, with commas; empty: all three."""
    out: str = ""
    """Folder of kubernetes.json and kubernetes.md."""


async def run(options: KubernetesOptions, report_line: ReportLine) -> Json:
    """Return the figures of each system, and the aims; with `out`, write JSON and a page there.

    Raises ValueError for an unknown system, and where a program cannot be built.
    """
    names = tuple(filter(None, options.only.split(","))) or SYSTEMS
    if unknown := set(names) - set(SYSTEMS):
        raise ValueError(f"only={options.only}: {unknown.pop()}: must be one of {SYSTEMS}")
    try:
        await asyncio.to_thread(build.build, (*build.ALL, *build.BESIDE))
    except DidNotStart as error:
        raise ValueError(str(error)) from None
    began_s = time.process_time()
    result: Json = {
        "bench": "kubernetes",
        **{k: v for k, v in asdict(options).items() if k not in ("out", "only")},
        "kubernetes": build.VERSION,
        "cores": os.cpu_count() or 0,
        "load_1m": round(os.getloadavg()[0], 1),
    }
    systems = {name: await measure(name, options, report_line) for name in names}
    result |= {"systems": systems, "aims": judge(systems)}
    return finish(result, began_s, options.out, render)


async def measure(name: str, options: KubernetesOptions, report_line: ReportLine) -> Json:
    """Measure one system on a cluster of its own."""
    report_line(f"{name}: a control plane with {options.nodes} nodes")
    async with (
        fake_cluster(options.nodes, options.gpus) as cluster,
        _system(cluster, name, options, report_line) as system,
        cluster.client(ADMIN) as api,
        watched_pods(api) as watch,
    ):
        await watch.create(PROBE.pods(system.scheduler))
        if not await watch.until_bound(1, PROBE_S, PROBE_S):
            raise TimeoutError(f"{name} places no pod; see {cluster.folder}")
        await watch.remove(options.limit_s)
        audit = AuditLog(cluster.audit)
        figures = await measure_speed(cluster, system, watch, audit, options, report_line)
        report_line(f"{name}: {figures['bound_per_s']} pods/s")
        return figures | {"contended": await measure_gangs(system, watch, options, report_line)}


@asynccontextmanager
async def _system(
    cluster: FakeCluster, name: str, options: KubernetesOptions, report_line: ReportLine
) -> AsyncIterator[System]:
    context: AbstractAsyncContextManager[System]
    if name == BERTH:
        context = berth(cluster, name, options.broker, options.nodes, report_line)
    else:
        context = kube_scheduler(cluster, name, UNLIMITED_PER_S if name == UNLIMITED else 0.0)
    async with context as system:
        yield system


async def measure_speed(
    cluster: FakeCluster,
    system: System,
    watch: PodWatch,
    audit: AuditLog,
    options: KubernetesOptions,
    report_line: ReportLine,
) -> Json:
    """Have gangs placed that all fit, and then removed."""
    gangs = [PodGang(f"g{n:04d}", options.workers, 1) for n in range(options.gangs)]
    pods = [pod for gang in gangs for pod in gang.pods(system.scheduler)]
    audit.take(system.user)
    before = Counter(system.cpu_s()), Counter(cluster.cpu_s())
    report_line(f"{system.name}: {len(pods)} pods of {len(gangs)} gangs")
    began_s = time.monotonic()
    await watch.create(pods)
    created_s = time.monotonic() - began_s
    bound = await watch.until_bound(len(pods), options.limit_s, options.limit_s)
    await asyncio.sleep(SETTLE_S)
    times = watch.times
    waits_s = [at_s - times.created_s[name] for name, at_s in times.bound_s.items()]
    last_s = max(times.bound_s.values(), default=began_s) - began_s
    spent = sum(system.cpu_s().values()) - before[0].total()
    of_daemons = sum(cluster.cpu_s().values()) - before[1].total()
    requests = audit.take(system.user)
    await watch.remove(options.limit_s)
    await asyncio.sleep(SETTLE_S)
    return speed_figures(
        pods=len(pods),
        bound=bound,
        created_s=created_s,
        last_s=last_s,
        waits_s=waits_s,
        cpu_s=(spent, of_daemons),
        requests=requests,
        requests_after=audit.take(system.user),
    )


async def measure_gangs(
    system: System, watch: PodWatch, options: KubernetesOptions, report_line: ReportLine
) -> Json:
    """Have two gangs compete for whole nodes, of which either fits and both do not."""
    workers = options.nodes // 2 + 1
    gangs = [PodGang(name, workers, options.gpus) for name in ("a", "b")]
    report_line(f"{system.name}: two gangs of {workers} whole nodes, of {options.nodes}")
    await watch.create(interleaved(gangs, system.scheduler))
    # A pod takes a whole node: no more get one once all nodes are taken.
    await watch.until_bound(options.nodes, options.limit_s, options.quiet_s)
    bound = watch.bound_by_gang()
    return gang_figures({gang.name: bound[gang.name] for gang in gangs}, workers, options.gpus)


if __name__ == "__main__":
    serve(run, KubernetesOptions, __doc__ or "")
