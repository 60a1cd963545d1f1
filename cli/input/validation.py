"""The job that validates nodes: one worker on each, which measures it and its links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from cli.errors import BadInput
from cli.input.documents import Body as Json

LEAST_NODES, MOST_NODES = 2, 64


def validation_spec(
    nodes: Sequence[Json], command: Sequence[str], limit_s: float, priority: str
) -> Json:
    """Return the spec of the job. Raises BadInput for nodes that are not alike.

    Each worker takes all GPUs of its node, or all cores of one without: it measures nothing beside
    another job, and no job is disturbed by it.
    """
    from services.failslow.validation_job import MEM_GIB, NAME, program

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
