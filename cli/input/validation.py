"""The job that validates nodes: one worker on each, which measures it and its links."""

from __future__ import annotations

import ast
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from cli.errors import BadInput
from cli.input.documents import Body as Json

LEAST_NODES, MOST_NODES = 2, 64
TRANSFER_MIB = 64
MEETING_S = 20
"""s for which a worker waits for another one."""
NAME = "validate-nodes"
MEM_GIB = 1.0


def validation_spec(
    nodes: Sequence[Json], command: Sequence[str], limit_s: float, priority: str
) -> Json:
    """Return the spec of the job. Raises BadInput for nodes that are not alike.

    Each worker takes all GPUs of its node, or all cores of one without: it measures nothing beside
    another job, and no job is disturbed by it.
    """
    names = [str(node["node_id"]) for node in nodes]
    if not LEAST_NODES <= len(set(names)) == len(names) <= MOST_NODES:
        rule = f"{LEAST_NODES} to {MOST_NODES} different nodes can be compared"
        raise BadInput(f"NODE: {', '.join(names) or 'none'}: {rule}")
    kinds = {(str(n["gpu_type"]), cast("int", n["gpus"]), cast("float", n["cpus"])) for n in nodes}
    if len({kind[:2] for kind in kinds}) > 1:
        listed = ", ".join(f"{n['node_id']} has {n['gpus']} {n['gpu_type']}" for n in nodes)
        raise BadInput(f"NODE: {listed}: only nodes of one GPU type and number can be compared")
    gpus, cpus = next(iter(kinds))[1], min(kind[2] for kind in kinds)
    return {
        "name": NAME,
        "validates": names,
        "command": list(command) or program(len(names)),
        "walltime_s": limit_s,
        "priority_class": priority,
        "gang": {
            "workers": len(names),
            "gpus_per_worker": gpus,
            "cpus_per_worker": 1.0 if gpus else cpus,
            "mem_gib_per_worker": MEM_GIB,
        },
    }


def program(workers: int) -> list[str]:
    """Return the built-in program with its rounds; it is the same text for every node."""
    import services.failslow.validation_program as measuring
    from services.failslow.core.diagnosis.layout import Group
    from services.failslow.core.diagnosis.validation import rounds_for

    text = Path(measuring.__file__).read_text()
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
