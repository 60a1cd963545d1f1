"""Hostile jobs and requests of a tenant: each case is held, or has leaked something of others.

A real agent is a node of a real stack, once as root and once as an ordinary user, and once in the
containers of `make compose-up`, if they run; a job of another tenant runs beside every case, and a
case after which it does not go on has leaked too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.parts.agents.node_pool import POOL, agents_stack
from benchmarks.parts.command import Json, serve
from benchmarks.parts.isolation import of_images, of_jobs, of_requests
from benchmarks.parts.isolation.containers import in_containers, is_up
from benchmarks.parts.isolation.node import ORDINARY_UID, confined_node
from benchmarks.parts.isolation.two_tenants import ATTACKER, OTHER, TwoTenants, tenant_api
from benchmarks.parts.slow_worker.nodes import join_token, until_alive
from benchmarks.parts.stack import Bench
from cli.errors import CliError
from cli.stack.bring_up import open_up, own_api
from infra.supervisor.running import Broker
from shared.contracts.pools import ConfigurePool
from shared.process.progress import ReportLine

Case = Callable[[TwoTenants], str]
CASES: tuple[Case, ...] = (*of_jobs.CASES, *of_images.CASES, *of_requests.CASES)
COMPOSE = "compose"


@dataclass(frozen=True, slots=True)
class IsolationOptions:
    """Two to five minutes an agent; `only` is the name of one case, `agent` that of one agent:
    `root`, `ordinary` or `compose`.
    """

    only: str = ""
    agent: str = ""
    broker: Broker = "embedded"


async def run(options: IsolationOptions, report_line: ReportLine) -> Json:
    """Return `held` or `leaked` by case, and the traces of what leaked."""
    if options.only not in ("", *names()):
        raise ValueError(f"only: {options.only!r}: no such case; {', '.join(names())} are allowed")
    cases, seen = dict[str, str](), dict[str, str]()
    for name, uid in chosen(options.agent):
        if name == COMPOSE:
            leaks = await asyncio.to_thread(tried, in_containers, name, options.only, report_line)
        else:
            async with agents_stack(options.broker, report_line) as bench:
                prepare = partial(prepared, bench, name, uid)
                leaks = await asyncio.to_thread(tried, prepare, name, options.only, report_line)
        cases |= {case: "leaked" if leak else "held" for case, leak in leaks.items()}
        seen |= {case: leak for case, leak in leaks.items() if leak}
    return {"bench": "isolation", "cases": cases, "seen": seen}


def chosen(agent: str) -> list[tuple[str, int]]:
    """Return the agents to try. Raises ValueError for one that cannot be started."""
    startable = [*agents_of(os.geteuid())]
    if is_up():
        startable.append((COMPOSE, 0))
    named = [item for item in startable if agent in ("", item[0])]
    if not named:
        allowed = ", ".join(name for name, _ in startable)
        raise ValueError(f"agent: {agent!r}: not here; {allowed} are allowed")
    return named


def agents_of(uid: int) -> Iterator[tuple[str, int]]:
    """Yield the name and user of each agent that this user can start."""
    if uid == 0:
        yield "root", 0
    if uid or shutil.which("setpriv"):
        yield "ordinary", uid or ORDINARY_UID


def names() -> list[str]:
    return [case.__name__ for case in CASES]


def tried(
    prepare: Callable[[], AbstractContextManager[TwoTenants]],
    name: str,
    only: str,
    report_line: ReportLine,
) -> dict[str, str]:
    """Return what leaked in each case, empty where nothing did."""
    leaks = dict[str, str]()
    with prepare() as tenants:
        for case in CASES:
            if only in ("", case.__name__):
                leaks[f"{name}/{case.__name__}"] = leak = outcome(tenants, case)
                report_line(f"{name}: {case.__name__}: {leak or 'held'}")
    return leaks


def outcome(tenants: TwoTenants, case: Case) -> str:
    """Try one case; the neighbour has to go on afterwards, else it is started anew."""
    try:
        leak = case(tenants)
    except (CliError, TimeoutError) as error:
        leak = f"no result: {error}"
    if tenants.ticks_on(tenants.ticks()):
        return leak
    tenants.start_neighbour()
    return f"{leak}; the neighbour was disturbed".removeprefix("; ")


@contextmanager
def prepared(bench: Bench, name: str, uid: int) -> Iterator[TwoTenants]:
    """Run a node of this user, with the neighbour's job on it."""
    pool = ConfigurePool(pool=POOL, backends=("agent",), base_policy="fair_share")
    open_up(bench.stack, [pool], [ATTACKER, OTHER])
    admin = own_api(bench.stack)
    with confined_node(bench, join_token(admin, POOL), f"node-{name}", uid) as node:
        until_alive(admin, 1)
        red, blue = tenant_api(admin, ATTACKER), tenant_api(admin, OTHER)
        folder = bench.stack.data_dir
        tenants = TwoTenants(admin, red, blue, node, f"node-{name}", POOL, folder)
        tenants.start_neighbour()
        yield tenants


if __name__ == "__main__":
    serve(run, IsolationOptions, __doc__ or "")
