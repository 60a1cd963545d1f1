"""Nodes of an engine in the ledger: they join, change, and take no new work for a while.

A node keeps its incarnation over restarts of the executor and of the engine, as its workers outlive
both. It joins anew where nothing of Berth is on it: then no worker is lost by that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

from services.executor.core.agents.hello import last_generation
from services.executor.core.agents.problems import changed_problems
from services.executor.core.agents.state import AgentNode, AgentPool, Capacity
from services.executor.core.engines.contract import EngineJob, EngineNode, EngineState
from services.executor.core.engines.gangs import Identity
from shared.contracts.agents import ADDRESS_LABEL
from shared.contracts.node_problems import NodeProblem, ReportedProblem
from shared.contracts.nodes import Backend
from shared.contracts.reports import NodeRegistered
from shared.contracts.terms import ENGINE_TERMS_ID

OCCUPIED_LABEL = "berth.occupied"
"""Label of a node with the work on it that Berth did not start."""
LABEL_CHARS = 256


class Site(NamedTuple):
    """The pool that an executor serves with an engine."""

    backend: Backend
    installation: str
    pool: str
    executor: str
    """Id of this process: two executors that register a node at once choose different uuids."""

    def is_own(self, job: EngineJob) -> bool:
        """Return whether Berth started the job, for this pool of this installation."""
        identity = Identity.parse(job.identity)
        return identity is not None and identity.is_of(self.installation, self.pool)


class Work(NamedTuple):
    """The work on a node, by the engine."""

    has_own: bool
    foreign: tuple[tuple[EngineJob, tuple[int, ...]], ...]
    """Jobs of others that hold GPUs there, with the indices."""

    @property
    def gpus(self) -> tuple[int, ...]:
        return tuple(sorted({gpu for _, gpus in self.foreign for gpu in gpus}))

    @property
    def words(self) -> str:
        return "; ".join(
            f"GPUs {','.join(map(str, gpus))}: {job.owner}" for job, gpus in self.foreign
        )


def work_on(site: Site, observation: EngineState, node_id: str) -> Work:
    """Return the work on a node; GPUs of which the engine shows a number alone are the first."""
    jobs = observation.jobs_on(node_id)
    others = [job for job in jobs if not site.is_own(job)]
    taken = {gpu for job in others for gpu in job.gpus.get(node_id, ())}
    free = (gpu for gpu in count() if gpu not in taken)
    foreign = [
        (job, held)
        for job in others
        if (held := job.gpus.get(node_id) or tuple(islice(free, job.gpu_counts.get(node_id, 0))))
    ]
    return Work(len(others) < len(jobs), tuple(foreign))


def registrations(
    site: Site, state: AgentPool, observation: EngineState
) -> Iterator[NodeRegistered]:
    """Yield the registration of each node that has not joined, or not as it is now."""
    for node in observation.nodes.values():
        known = state.nodes.get(node.node_id)
        work = work_on(site, observation, node.node_id)
        if not node.responds or work.has_own or (known is not None and known.workers):
            continue
        if known is None or known.lost is not None or known.capacity != capacity_of(node, work):
            yield _registration(site, state, node, work)


def capacity_of(node: EngineNode, work: Work) -> Capacity:
    return Capacity(node.gpu_type, node.gpus, node.cpus, node.mem_gib, work.gpus)


def responding_nodes(state: AgentPool, observation: EngineState) -> Iterator[AgentNode]:
    """Yield the joined nodes that the engine hears from."""
    for node_id, node in state.nodes.items():
        seen = observation.nodes.get(node_id)
        if node.lost is None and seen is not None and seen.responds:
            yield node


def problems(site: Site, state: AgentPool, observation: EngineState) -> Iterator[ReportedProblem]:
    """Yield the problems of joined nodes that began or are over.

    GPUs of others that a registration names are not offered. Those that came later, and GPUs that
    went, while Berth has workers there, keep new work off the node until it can join anew.
    """
    for known in responding_nodes(state, observation):
        node = observation.nodes[known.node_id]
        work = work_on(site, observation, known.node_id)
        more = len(work.gpus) > len(known.capacity.unusable_gpus)
        present: dict[NodeProblem, str | None] = {
            "engine_drained": node.drained or _fewer_gpus(known, node),
            "foreign_work": work.words if more else "",
        }
        yield from changed_problems(state, known.node_id, present)


def _fewer_gpus(known: AgentNode, node: EngineNode) -> str:
    """Return how many GPUs are left of those with which a node joined that has workers now."""
    if not known.workers or node.gpus >= known.capacity.gpus:
        return ""
    return f"{node.gpus} of its {known.capacity.gpus} GPUs are left; it joins anew without workers"


def _registration(site: Site, state: AgentPool, node: EngineNode, work: Work) -> NodeRegistered:
    """Return the registration of a node on which nothing of Berth is.

    That the engine shows none is the proof that the old incarnation is over: the pid namespace
    stands for the engine, whose job nothing outlives.
    """
    generation = last_generation(state, node.node_id) + 1
    seed = "/".join((site.installation, site.pool, site.executor, node.node_id, str(generation)))
    labels = {**node.labels, ADDRESS_LABEL: node.address}
    if work.foreign:
        labels[OCCUPIED_LABEL] = work.words[:LABEL_CHARS]
    return NodeRegistered(
        node_id=node.node_id,
        incarnation=hashlib.sha256(seed.encode()).hexdigest()[:32],
        backend=site.backend,
        gpu_type=node.gpu_type,
        gpus=node.gpus,
        cpus=node.cpus,
        mem_gib=node.mem_gib,
        labels=labels,
        generation=generation,
        boot_id=site.backend,
        pid_namespace=site.pool,
        hardware=hashlib.sha256(f"{site.pool}/{node.node_id}".encode()).hexdigest()[:32],
        unusable_gpus=work.gpus,
        terms_id=ENGINE_TERMS_ID,
    )
