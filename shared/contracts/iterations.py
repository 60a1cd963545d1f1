"""The last iterations of one process of a training: a column per quantity."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.contracts.base import Model

MAX_ITERATIONS = 1024
MAX_PHASES = 8
MAX_AXES = 8
LONGEST_S = 1e9

IterationKind = Literal["train", "evaluation", "checkpoint"]
"""Only iterations of training are compared with each other."""
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Label = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,31}$")]


class IterationColumns(Model):
    """Each column is empty, or has one value per iteration: that of a quantity that is unknown in
    one iteration is null."""

    iteration_s: tuple[float, ...] = Field(
        max_length=MAX_ITERATIONS, description="whole iterations, oldest first, s"
    )
    own_s: tuple[Seconds | None, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="s of own work, without waiting for other ranks"
    )
    wait_s: tuple[Seconds | None, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="s of waiting for other ranks"
    )
    delay_s: tuple[Seconds | None, ...] = Field(
        (),
        max_length=MAX_ITERATIONS,
        description="s of own work in which the process waited for a processor of its host",
    )
    steps: tuple[Count, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="numbers of the iterations, as the job counts"
    )
    kinds: tuple[IterationKind, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="kind of each; none: all are of training"
    )
    samples: tuple[Count | None, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="samples of each on this process"
    )
    tokens: tuple[Count | None, ...] = Field(
        (), max_length=MAX_ITERATIONS, description="tokens of each on this process"
    )
    phases: dict[Label, tuple[Seconds | None, ...]] = Field(
        default_factory=dict,
        max_length=MAX_PHASES,
        description="s of each phase, as `forward`, `backward` or `comm.dp`",
    )
    layout: dict[Label, Annotated[int, Field(ge=0, lt=2**31)]] = Field(
        default_factory=dict,
        max_length=MAX_AXES,
        description="position of the process along each axis, as `tp`, `dp`, `pp`",
    )
    microbatches: Count | None = Field(
        None, description="micro-batches of an iteration on this process; absent: unknown"
    )
    activations: Count | None = Field(
        None, description="micro-batches of which this process can hold activations at once"
    )
    process: int | None = Field(
        None, ge=0, lt=2**31, description="rank of the process in its training; absent: unknown"
    )


def check_columns(times: IterationColumns) -> None:
    """Raise ValueError for a column that has neither no value nor one per iteration."""
    named = {name: getattr(times, name) for name in COLUMNS} | times.phases
    for name, column in named.items():
        if len(column) not in (0, len(times.iteration_s)):
            raise ValueError(
                f"{name}: {len(column)} values; none or one per iteration is allowed,"
                f" of which there are {len(times.iteration_s)}"
            )


COLUMNS = ("own_s", "wait_s", "delay_s", "steps", "kinds", "samples", "tokens")
"""Fields with one value per iteration, besides `iteration_s` and each of `phases`."""
