"""Why a job stays in line, with its numbers; said only when the reason is news."""

from __future__ import annotations

from services.placement.core.board import Draft
from services.placement.core.easy import Head
from services.placement.core.fit import Failures, could_hold, fits_now, place, would_hold
from services.placement.core.shape import GPU, Shape, Slot
from services.placement.core.state import Job
from services.placement.core.view import Held, Plan, View
from shared.contracts.placement import HoldReason

HELD_PER_ROUND = 64


def tell(
    view: View,
    draft: Draft,
    plan: Plan,
    blocked: list[tuple[int, Job]],
    kept: list[Slot],
    keepers: set[str],
    head: Head | None,
) -> None:
    """Note what is news of the blocked jobs, best first; what was kept for some is given back.

    `head`: whom all others in line are behind; it is the first of the blocked.
    """
    if not blocked:
        return
    draft.give(kept)
    reasons = Reasons(view, draft, bool(kept), head)
    for position, job in blocked:
        reason = reasons.of(job, job.job_id in keepers)
        if reason == job.held:
            continue
        if len(plan.held) == HELD_PER_ROUND:
            plan.unfinished = True
            return
        plan.held.append(held(view, draft, job, reason, position, head))


class Reasons:
    """One round's answers by shape: most blocked jobs look alike."""

    def __init__(self, view: View, draft: Draft, kept: bool, head: Head | None) -> None:
        self.view = view
        self.draft = draft
        self.kept = kept
        self.head = head
        self.known: dict[tuple[Shape, tuple[str, ...], bool], HoldReason] = {}
        self.failures = Failures()

    def of(self, job: Job, is_keeper: bool) -> HoldReason:
        """Who is the head, or has GPUs kept for it, waits for GPUs and for nobody else."""
        is_keeper = is_keeper or bool(self.head and self.head.job_id == job.job_id)
        key = (job.shape, job.avoid, is_keeper)
        reason = self.known.get(key)
        if reason is None:
            reason = self.known[key] = self.find(job.shape, is_keeper)
        return reason

    def find(self, shape: Shape, is_keeper: bool) -> HoldReason:
        board = self.draft.board
        ever = could_hold(board, shape, ())
        if ever < shape.min_workers:
            away = would_hold((board.nodes[n].kind for n in cordoned(self.view)), shape)
            return "draining" if ever + away >= shape.min_workers else "no_node_fits"
        return "no_capacity" if is_keeper else self.behind(shape)

    def behind(self, shape: Shape) -> HoldReason:
        if self.head and self.view.mode == "strict":
            return "behind_head"
        if not (self.kept or self.head) or not self.fits(shape):
            return "no_capacity"
        return "reserved_for_head" if self.head and self.head.nodes else "behind_reservation"

    def fits(self, shape: Shape) -> bool:
        if self.failures.covers(shape, ()):
            return False
        mark = len(self.draft.log)
        slots = place(self.draft, shape, ())
        self.draft.rollback(mark)
        if not slots:
            self.failures.add(shape, ())
        return bool(slots)


def cordoned(view: View) -> list[str]:
    nodes = view.board.nodes
    return [name for name in view.cordons if name in nodes and nodes[name].lost_at is None]


def held(
    view: View, draft: Draft, job: Job, reason: HoldReason, position: int, head: Head | None
) -> Held:
    shape, board = job.shape, draft.board
    if reason in ("no_node_fits", "draining"):
        found = could_hold(board, shape, ())
    else:
        found = fits_now(board, shape)
    short = max(0, shape.min_workers - found) * shape.worker_milli / GPU
    detail: dict[str, float | str] = {
        "position": position,
        "waiting": len(view.waiting),
        "workers": shape.min_workers,
        "workers_that_fit": min(found, shape.min_workers),
        "free_gpus": board.free_of(shape.types),
    }
    if head and reason in ("behind_head", "reserved_for_head"):
        detail["head"] = head.job_id
        if head.at is not None:
            detail["shadow_at"] = head.at
    return Held(job, reason, short, detail)
