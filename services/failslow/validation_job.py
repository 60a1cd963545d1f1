"""The job that measures nodes: its program, and the command by which fail-slow submits one."""

from __future__ import annotations

import ast
import json
import re
import secrets
from pathlib import Path
from uuid import uuid5

from services.failslow import validation_program
from services.failslow.core.diagnosis.layout import Group
from services.failslow.core.diagnosis.validation import rounds_for
from services.failslow.core.plans.measuring import VERDICT_S
from services.failslow.core.state import FailSlowState, OwnValidation
from shared.contracts.codec import encode
from shared.contracts.identity import BERTH
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.validation import FAILSLOW, MEASURING_S
from shared.ledger import cloudevents

SOURCE = "/berth/failslow"
TRANSFER_MIB = 64
MEETING_S = 20
"""s for which a worker waits for another one."""
NAME = "validate-nodes"
INDENT = re.compile(r"^(?: {4})+", re.MULTILINE)
MEM_GIB = 1.0


def program(workers: int) -> list[str]:
    """Return the built-in program with its rounds; it is the same text for every node."""
    text = Path(validation_program.__file__).read_text()
    plan = {
        "rounds": [one.pairs for one in rounds_for([Group("dp", 0, tuple(range(workers)))])],
        "token": secrets.token_hex(16),
        "mib": TRANSFER_MIB,
        "wait_s": MEETING_S,
    }
    return ["python3", "-c", compact(text), json.dumps(plan, separators=(",", ":"))]


class _Bare(ast.NodeTransformer):
    """Removes docstrings and annotations, which a node does not need."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        for argument in node.args.args + ([node.args.vararg] if node.args.vararg else []):
            argument.annotation = None
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node


def compact(text: str) -> str:
    """Return the same program with less text: an argument of a command has a bound.

    Without docstrings no line begins within a string, so that all indents can be shorter.
    """
    bare = ast.unparse(ast.fix_missing_locations(_Bare().visit(ast.parse(text))))
    return INDENT.sub(lambda indent: " " * (len(indent[0]) // 4), bare)


def due_validations(state: FailSlowState, now: int) -> dict[str, OwnValidation]:
    """Return the validations to submit, by the id of their job: those of plans that are open."""
    plans = state.mitigation.plans
    return {
        job_id: own
        for job_id, own in state.validations.items()
        if own.plan_id in plans and job_id not in state.gangs and not is_late(state, own, now)
    }


def due_cancels(state: FailSlowState, now: int) -> dict[str, OwnValidation]:
    """Return the validations to cancel: they do not run, and their reason is gone, or too old."""
    return {
        job_id: own
        for job_id, own in state.validations.items()
        if job_id not in state.gangs and (own.is_over or is_late(state, own, now))
    }


def is_late(state: FailSlowState, own: OwnValidation, now: int) -> bool:
    """Return whether a validation waits for too long to start, by wall time, in which it runs."""
    time_scale = state.pool.time_scale if state.pool else 1.0
    return state.cluster_s(now) >= own.applied_s + VERDICT_S * max(1.0, time_scale)


def cancellation(job_id: str, own: OwnValidation) -> CancelJob:
    """Return the command to cancel a validation; admission knows it by its plan."""
    return CancelJob(job_id=job_id, tenant=own.tenant, reason=own.plan_id)


def submission(state: FailSlowState, job_id: str, own: OwnValidation) -> SubmitJob:
    """Return the command for a validation: it stops the job that it measures, and no other."""
    assert state.pool is not None, "a validation is of a pool"
    spec = JobSpec(
        name=NAME,
        validates=own.node_ids,
        measures=own.job_id,
        command=tuple(program(len(own.node_ids))),
        walltime_s=MEASURING_S * state.pool.time_scale,
        priority_class="system",
        gang=Gang(
            workers=len(own.node_ids),
            gpus_per_worker=own.gpus,
            cpus_per_worker=1.0,
            mem_gib_per_worker=MEM_GIB,
        ),
    )
    return SubmitJob(
        job_id=job_id,
        tenant=own.tenant,
        pool=state.pool.pool,
        idempotency_key=own.plan_id,
        spec=spec,
        by_operator=True,
    )


def encoded(command: SubmitJob | CancelJob, pool: str, at_ms: int) -> bytes:
    """Return the record of the command; a repetition has the same id, and changes nothing."""
    kind = "/cancel" if isinstance(command, CancelJob) else ""
    return cloudevents.encode(
        id=str(uuid5(BERTH, f"{SOURCE}/{command.job_id}{kind}")),
        source=SOURCE,
        type=command.TYPE,
        data=encode(command),
        at_ms=at_ms,
        subject=command.job_id,
        tenant=command.tenant or "",
        pool=pool,
        principal=FAILSLOW,
    )
