"""The flags of `berth simulate` that are fields of `SimulationOptions`, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Literal

import typer


@dataclass(frozen=True, slots=True)
class OptionDefault:
    """The default of a flag: that of a field of `SimulationOptions`, imported only when needed."""

    field: str

    def __call__(self) -> Any:
        from simulator.engine.options import SimulationOptions

        return SimulationOptions.__dataclass_fields__[self.field].default

    def __str__(self) -> str:
        """Return the default as help shows it."""
        value = self()
        return f"{value:g}" if isinstance(value, float) else str(value)


def flag(field: str, kind: Any, help_text: str, *names: str, **bounds: Any) -> Parameter:
    """Return the flag of a field, called as the field unless it has names of its own.

    `bounds` are given where the field is no setting of a pool: a pool checks its settings itself.
    """
    option = typer.Option(
        *(names or (f"--{field.replace('_', '-')}",)),
        default_factory=OptionDefault(field),
        show_default=kind is not bool and not isinstance(kind, UnionType),
        help=help_text,
        **bounds,
    )
    return Parameter(field, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])


FLAGS = (
    flag("base_policy", str, "Base order: fcfs, saf, wfp3, las, ...", "--policy"),
    flag("runtime", str, "user, history or oracle."),
    flag("queue_mode", str, "strict, skip or easy.", "--mode"),
    flag("easy_runtime", str, "Run times by which EASY backfills: history or user."),
    flag(
        "guard_predictions",
        bool,
        "Whether predictions are guarded against tenants who make jobs look short.",
    ),
    flag(
        "reserve_after_s",
        float | None,
        "Cluster seconds of waiting until GPUs are reserved for a job.",
    ),
    flag("preemption", str, "class or ranked."),
    flag("learned", str | None, "Learned policy over the base."),
    flag("solver", str, "greedy or cpsat."),
    flag(
        "nodes", int | None, "Number of nodes; defaults to the number that gives the load.", min=1
    ),
    flag("gpus_per_node", int, "GPUs of each node.", min=1, max=64),
    flag(
        "load",
        float | None,
        "Offered load; with --nodes arrival times are scaled.",
        min=0.01,
        max=10,
    ),
    flag("last_share", float, "Share of the time that is evaluated.", min=0.01, max=1),
    flag("time_scale", float, "Cluster seconds per second of the pool's clock."),
    flag(
        "restart_s",
        float,
        "Restart cost after a preemption, in cluster seconds.",
        "--restart",
        "--restart-s",
        min=0,
    ),
    flag(
        "checkpoint_s",
        float,
        "Checkpoint interval in cluster seconds; 0 for none.",
        "--checkpoint",
        "--checkpoint-s",
        min=0,
    ),
    flag(
        "restart_growth",
        float,
        "Power of a gang's GPUs with which its restart takes longer; 0: gangs restart alike.",
        min=0,
        max=1,
    ),
    flag(
        "checkpoint_spread",
        float,
        "Spread of the jobs' checkpoint intervals: standard deviation of their logarithm.",
        min=0,
        max=3,
    ),
    flag(
        "checkpoint_cost_s",
        float,
        "Cluster seconds of a checkpoint that a job writes as it is stopped; 0: it writes none.",
        min=0,
    ),
    flag("fixed_share", float, "Share of the jobs that may not be preempted.", min=0, max=1),
    flag(
        "preemption_protection",
        str,
        "residency, or progress: stops by rank just after checkpoints, few, within a budget.",
        "--protection",
    ),
    flag("loss_share", float, "Under progress: share of GPU time that stops may cost."),
    flag(
        "min_residency_s",
        float,
        "Cluster seconds before a running job may be outranked.",
        "--residency",
    ),
    flag(
        "preempt_margin",
        float | None,
        "Score margin required for a preemption by rank.",
        "--margin",
    ),
    flag("large_gang_share", float, "Share of the pool that makes a gang large."),
    flag(
        "defragment_after_s",
        float,
        "Cluster seconds before defragmentation may migrate a job.",
        "--defragment-after",
    ),
    flag(
        "tenant_floor", float, "Part of its fair share of the GPUs that a tenant's best jobs have."
    ),
    flag(
        "walltime",
        Literal["none", "trace", "oracle"],
        "Requested run times: none, trace or oracle.",
    ),
    flag("failures", bool, "Simulate node failures.", "--failures"),
    flag("seed", int, "Seed of the synthetic workload and the failures."),
)


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the `**options` of a command by `FLAGS`; it receives them by their fields' names."""
    signature = inspect.signature(command, eval_str=True)
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind != Parameter.VAR_KEYWORD
    ]
    command.__dict__["__signature__"] = signature.replace(parameters=[*named, *FLAGS])
    return command
