"""Defragmentation: small jobs migrate so that a larger one gets whole nodes.

Free GPUs that lie scattered over nodes are of no use to a gang that needs them side by side. Where
rank may stop jobs, a job that has no victims gets the nodes with the least in use emptied: the jobs
there migrate, whatever their rank, for they lose no more than a restart. RULES.md, 13, is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import place, probe_anywhere, too_few
from services.placement.core.round.plan import Migration, Plan
from services.placement.core.round.protection import movable_from_ms, stoppable
from services.placement.core.round.view import View

DEFRAGMENTED_PER_ROUND = 2
"""Jobs for which others migrate in one round."""
TRIES_PER_ROUND = 8
"""Jobs that may search for such others: each search visits every node."""
MIGRATIONS_MOST = 16
"""Jobs that migrate for one job."""
LEAST_SHARE = 2
"""The jobs that migrate for one have together at most 1 / so much of its GPUs."""


class Defragmentation(NamedTuple):
    """Migrations, and the slots that the job will get once they are done."""

    migrations: list[Migration]
    slots: list[Slot]


class NodeToEmpty(NamedTuple):
    """A node with all jobs that would have to leave it, the largest first."""

    gpus: int
    """GPUs in use by them."""
    node_id: str
    tier: int
    """Of the highest class among them."""
    migrating: list[Job]


class DefragmentationSearch:
    """The searches for migrations in one round, with the shapes for which there are none."""

    def __init__(self, view: View, trial: Trial, plan: Plan) -> None:
        self._view = view
        self._trial = trial
        self._plan = plan
        self._scattered: set[Shape] = set()
        self._nodes: list[NodeToEmpty] | None = None
        self._searches = 0
        self.served = 0
        """Jobs for which others stop."""

    def make_room(self, job: Job, shape: Shape) -> list[Slot]:
        """Let others migrate and reserve what they leave; no slots where that is not enough."""
        if self._view.is_out_of_turn(job) or shape in self._scattered:
            return []
        if self.served == DEFRAGMENTED_PER_ROUND or self._searches == TRIES_PER_ROUND:
            return []
        if not may_defragment(self._view, self._trial, shape):
            return []
        self._searches += 1
        if self._nodes is None:
            self._nodes = nodes_to_empty(self._view)
        result = defragment(self._trial, self._nodes, job, shape, self._busy())
        if result is None:
            self._scattered.add(shape)
            return []
        self.served += 1
        for migration in result.migrations:
            self._trial.take(migration.slots)
        self._plan.migrations += result.migrations
        return self._trial.reserve(result.slots)

    def _busy(self) -> frozenset[str]:
        """Return the jobs that the plan stops, and the nodes on which it starts some."""
        starts = {slot.node_id for start in self._plan.assignments for slot in start.slots}
        return self._plan.stopped_jobs() | starts


def may_defragment(view: View, trial: Trial, shape: Shape) -> bool:
    """Return whether the gang would fit if the free GPUs lay side by side."""
    rules = view.rank_rules
    if rules is None or rules.defragment_after_ms is None or rules.is_paused:
        return False
    return not shape.is_share and shape.gpus > 0 and not too_few(trial.board, shape)


def defragment(
    trial: Trial, nodes_to_empty: list[NodeToEmpty], job: Job, shape: Shape, busy: frozenset[str]
) -> Defragmentation | None:
    """Return the migrations that make room; None where none are enough. The trial stays as it was.

    `busy`: jobs that this round stops, and nodes on which it starts some.
    """
    left = shape.min_workers * shape.gpus // LEAST_SHARE
    emptied: frozenset[str] = frozenset()
    migrations: list[Migration] = []
    mark = len(trial.log)
    try:
        for donor in candidates(trial, nodes_to_empty, job, shape, busy):
            if donor.gpus > left:
                return None
            targets = {slot.node_id for migration in migrations for slot in migration.slots}
            if donor.node_id in targets or len(migrations) + len(donor.migrating) > MIGRATIONS_MOST:
                continue
            new = migrate_all(trial, donor, emptied | {donor.node_id}, job)
            if new is None:
                continue
            migrations += new
            left -= donor.gpus
            emptied |= {donor.node_id}
            if slots := probe_anywhere(trial, shape, job):
                return Defragmentation(migrations, slots)
        return None
    finally:
        trial.rollback(mark)


def candidates(
    trial: Trial, nodes_to_empty: list[NodeToEmpty], job: Job, shape: Shape, busy: frozenset[str]
) -> Iterator[NodeToEmpty]:
    """Yield the nodes that would hold one more worker if they were empty.

    Their jobs are of the job's class or a lower one.
    """
    for donor in nodes_to_empty:
        node = trial.board.nodes[donor.node_id]
        if donor.node_id in busy or donor.node_id in job.avoid or not node.kind.workers(shape):
            continue
        if not is_half_free(node):
            continue
        if donor.tier < job.tier or any(
            migrating_job.job_id in busy for migrating_job in donor.migrating
        ):
            continue
        if (node.whole + donor.gpus) // shape.gpus > node.whole // shape.gpus:
            yield donor


def nodes_to_empty(view: View) -> list[NodeToEmpty]:
    """Return the nodes whose jobs may all migrate now: the least in use first, then by name.

    Free GPUs only become fewer in a round, so a node that is not half free now is left out.
    """
    nodes = [node for node in view.board.nodes.values() if node.indexed and is_half_free(node)]
    return sorted(donor for node in nodes if (donor := node_to_empty(view, node)))


def is_half_free(node: Node) -> bool:
    return 2 * node.whole >= node.kind.gpus


def node_to_empty(view: View, node: Node) -> NodeToEmpty | None:
    """Return the node with its jobs; None where there is no job, or one has to stay."""
    migrating = []
    for job_id in node.jobs:
        job = view.running[job_id]
        if not any(allocation.slot.gpus for allocation in job.allocations.values()):
            continue
        if not is_movable(view, job):
            return None
        migrating.append(job)
    if not migrating:
        return None
    migrating.sort(key=lambda job: (-job.gpus, job.job_id))
    gpus, tier = sum(round(job.gpus) for job in migrating), min(job.tier for job in migrating)
    return NodeToEmpty(gpus, node.node_id, tier, migrating)


def is_movable(view: View, job: Job) -> bool:
    """Return whether it is one worker with whole GPUs that ran long enough since it last
    started.
    """
    rules = view.rank_rules
    if rules is None or rules.defragment_after_ms is None or len(job.allocations) != 1:
        return False
    (allocation,) = job.allocations.values()
    if allocation.slot.milli != GPU or job.started_at + rules.defragment_after_ms > view.now:
        return False
    if movable_from_ms(job, rules.protection.min_residency_ms, view.time_scale) > view.now:
        return False
    return stoppable(job, rules.protection, view.now).at_ms <= view.now


def migrate_all(
    trial: Trial, donor: NodeToEmpty, emptied: frozenset[str], by: Job
) -> list[Migration] | None:
    """Return a migration per job of the node, taken on the trial; None if one finds no room."""
    mark = len(trial.log)
    migrations = []
    for migrating_job in donor.migrating:
        alone = migrating_job.shape._replace(min_workers=1, max_workers=1)
        slots = place(trial, alone, emptied.union(migrating_job.avoid))
        if not slots:
            trial.rollback(mark)
            return None
        migrations.append(Migration(migrating_job, slots, "defragment", by))
    for migrating_job in donor.migrating:
        trial.give(slots_by_rank(migrating_job))
    return migrations
