"""The job that measures nodes: its program, and the command by which fail-slow submits one."""

from __future__ import annotations

import ast
import json
import secrets
from pathlib import Path
from uuid import uuid5

from services.failslow import validation_program
from services.failslow.core.diagnosis.layout import Group
from services.failslow.core.diagnosis.validation import rounds_for
from services.failslow.core.state import FailSlowState, OwnValidation
from shared.contracts.codec import encode
from shared.contracts.identity import BERTH
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec
from shared.ledger import cloudevents

SOURCE = "/berth/failslow"
TRANSFER_MIB = 64
MEETING_S = 20
"""s for which a worker waits for another one."""
NAME = "validate-nodes"
MEM_GIB = 1.0
LONGEST_S = 120.0
"""Wall s that a validation by fail-slow runs at most."""


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
    """Return the same program with less text: an argument of a command has a bound."""
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(ast.parse(text))))


def due_validations(state: FailSlowState) -> dict[str, OwnValidation]:
    """Return the validations to submit, by the id of their job: those of plans that are open."""
    plans = state.mitigation.plans
    return {
        job_id: own
        for job_id, own in state.validations.items()
        if own.plan_id in plans and job_id not in state.gangs
    }


def submission(state: FailSlowState, job_id: str, own: OwnValidation) -> SubmitJob:
    """Return the command for a validation: it stops the job, whose GPUs it takes over."""
    assert state.pool is not None, "a validation is of a pool"
    spec = JobSpec(
        name=NAME,
        validates=own.node_ids,
        command=tuple(program(len(own.node_ids))),
        walltime_s=LONGEST_S * state.pool.time_scale,
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


def encoded(command: SubmitJob, at_ms: int) -> bytes:
    """Return the record of the command; a repetition has the same id, and changes nothing."""
    return cloudevents.encode(
        id=str(uuid5(BERTH, f"{SOURCE}/{command.job_id}")),
        source=SOURCE,
        type=command.TYPE,
        data=encode(command),
        at_ms=at_ms,
        subject=command.job_id,
        tenant=command.tenant,
        pool=command.pool,
        principal="failslow",
    )
