"""Variables of a worker that Berth sets itself: a job that sets them is refused."""

from __future__ import annotations

from collections.abc import Iterable

from services.gateway.core.field_errors import FieldError, plain

PREFIX = "BERTH_"
READ_BY_AGENTS = frozenset({"BERTH_PROGRESS", "BERTH_STRAGGLERS"})
"""The variables of this prefix that are a job's to set."""
GANG_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "NODE_RANK",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)
"""Set by an agent for each worker, as a launcher of trainings does."""
RULE = "Berth sets this variable for each worker (docs/operations/nodes.md): choose another name"


def reserved_variables(names: Iterable[str]) -> list[str]:
    """Return the names that an agent would replace or drop."""
    return [
        name
        for name in names
        if name in GANG_VARIABLES or (name.startswith(PREFIX) and name not in READ_BY_AGENTS)
    ]


def variable_errors(names: Iterable[str], field: str) -> list[FieldError]:
    """Return an error per reserved name; values of variables are private and not repeated."""
    return [
        FieldError(field=field, value=plain(name), rule=RULE) for name in reserved_variables(names)
    ]
