"""The demo from start to end: start a stack, replay a workload, report, stop."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import psutil

from cli.demo import engines, pools
from cli.demo.llm import LlmDemo
from cli.demo.local_jobs import local_jobs
from cli.demo.options import (
    ABUSER,
    DEMO_POOL,
    GRACE_S,
    LOCAL_POOL,
    PATIENCE,
    TENANTS,
    DemoOptions,
    replay_wall_s,
)
from cli.demo.replay import Replaying
from cli.demo.summary import advice, summary
from cli.errors import Refused
from cli.replay.feeder import Timed
from cli.replay.submission import of_workload
from cli.replay.workload import timed, workload
from cli.stack.bring_up import Inventories, open_up, with_nodes
from cli.stack.machine import local_node
from cli.text.output import emit, report_line
from infra.supervisor import supervise
from infra.supervisor.local_node import LocalNode
from infra.supervisor.running import RunningStack
from simulator.workload.rows import WorkloadJob
from simulator.workload.scale import ReplayPlan, plan_replay


@dataclass(frozen=True, slots=True)
class Prepared:
    """The demo's inputs, read and checked before anything is started."""

    jobs: Sequence[WorkloadJob]
    inventories: Inventories
    node: LocalNode
    plan: ReplayPlan
    llm_ports: Sequence[int]
    """Ports of the LLM engines; empty without them."""

    @property
    def tenants(self) -> list[str]:
        abuser = [ABUSER] if self.llm_ports else []
        return sorted({*TENANTS, *abuser, *(job.tenant for job in self.jobs)})


def demo(options: DemoOptions) -> int:
    """Run the demo and return its exit code: 1 if a job did not end or verify failed."""
    began_s = psutil.Process().create_time()
    prepared = prepare(options)
    with terminated_like_interrupted():
        try:
            return _run(options, prepared, began_s)
        except KeyboardInterrupt:
            report_line("stopping")
            return 0 if not options.check else 1
        finally:
            supervise.down(options.data_dir)


def prepare(options: DemoOptions) -> Prepared:
    """Read and check the inputs. Raises BadInput for a workload that cannot be read."""
    jobs = workload(options.trace, options.jobs, options.seed)
    inventories = pools.inventories([job.gpu_type for job in jobs if job.gpu_type])
    plan = plan_replay(
        jobs, pools.capacity_gpus(inventories), replay_wall_s(len(jobs)), options.speed
    )
    ports = engines.engine_ports() if options.llm else ()
    return Prepared(jobs, inventories, local_node(LOCAL_POOL), plan, ports)


def _run(options: DemoOptions, prepared: Prepared, began_s: float) -> int:
    stack = _start(options, prepared)
    open_up(stack, pools.pools(prepared.plan.time_scale), prepared.tenants, prepared.node)
    report_line(f"stack ready after {time.time() - began_s:.1f} s; API: {stack.gateway}")
    llm = LlmDemo(stack, prepared.llm_ports) if prepared.llm_ports else None
    shown = advice(stack, prepared.jobs, llm)
    for line in () if options.check else shown:
        report_line(line)
    replaying = Replaying(
        stack=stack,
        due=due(prepared),
        local=local_jobs(_run_name(prepared)),
        nodes=pools.node_count(prepared.inventories) + 1,
        tenants=TENANTS,
        speed=prepared.plan.time_scale,
        timeout_s=options.timeout_s or prepared.plan.expected_wall_s * PATIENCE + GRACE_S,
        stays=not options.check,
        advice=shown,
        llm=llm,
    )
    outcome = asyncio.run(replaying.run())
    if outcome.missing:
        first = ", ".join(outcome.missing[:5])
        report_line(
            f"timeout after {replaying.timeout_s:.0f} s: {len(outcome.missing)} jobs: {first}"
        )
    if not options.check:
        return 0
    result = summary(outcome, prepared.jobs, prepared.plan.time_scale, began_s)
    emit(result)
    return 0 if result["verify"] == "ok" else 1


def _start(options: DemoOptions, prepared: Prepared) -> RunningStack:
    if supervise.is_running(options.data_dir):
        raise Refused(f"a demo is already running in {options.data_dir}; stop it first")
    shutil.rmtree(options.data_dir, ignore_errors=True)
    requested = supervise.StackOptions(
        data_dir=options.data_dir,
        broker=options.broker,
        foreground=True,
        tracing=options.tracing,
        tls=options.tls,
        beside=engines.engine_programs(prepared.llm_ports),
    )
    return supervise.up(with_nodes(requested, prepared.inventories, prepared.node), report_line)


def due(prepared: Prepared) -> list[Timed]:
    """Return each job as a submission of its tenant, at its time in the replay."""
    run = _run_name(prepared)
    return timed(
        prepared.jobs, prepared.plan.time_scale, lambda job: of_workload(job, DEMO_POOL, run)
    )


def _run_name(prepared: Prepared) -> str:
    return f"demo-{len(prepared.jobs)}"


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that the stack is stopped: the first one alone.

    `make` passes on what its own group got, and a second interruption would cut the first one's
    end short.
    """

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
