"""The parallel layout of a training as its processes report it, and schedules made for it."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from shared.contracts.base import Model

MOST_GROUPS: Final = 1024
MOST_STAGES: Final = 256
MOST_MICROBATCHES: Final = 16_384
"""Of one iteration, in all groups: a bound on the time that an exact division takes."""
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Count = Annotated[int, Field(ge=1, le=MOST_MICROBATCHES)]


class Replicas(Model):
    """The data-parallel groups of a gang in order, each by its slowest process."""

    microbatch_s: tuple[Seconds, ...] = Field(
        max_length=MOST_GROUPS, description="own work per micro-batch, s"
    )
    microbatches: tuple[Count, ...] = Field(
        max_length=MOST_GROUPS, description="micro-batches of an iteration"
    )


class PipelineProfile(Model):
    """The stages of a pipeline in order; times are s per micro-batch."""

    microbatches: Count = Field(description="of an iteration, in one pipeline")
    forward_s: tuple[Seconds, ...] = Field(max_length=MOST_STAGES, description="forward pass")
    backward_s: tuple[Seconds, ...] = Field(
        max_length=MOST_STAGES, description="backward pass; for the input alone where `weight_s` is"
    )
    weight_s: tuple[Seconds, ...] = Field(
        max_length=MOST_STAGES, description="backward pass for the weights; 0: not on its own"
    )
    link_delay_s: tuple[Seconds, ...] = Field(
        max_length=MOST_STAGES - 1, description="one-way delay of a message to the next stage"
    )
    memory: tuple[Count, ...] = Field(
        (), max_length=MOST_STAGES, description="activations that a stage can hold; empty: unknown"
    )


class AdaptedSchedule(Model):
    """A pipeline schedule that absorbs delays of links: warm-up counts, and what they bring."""

    warmup: tuple[int, ...] = Field(
        description="forwards of each stage before its first backward pass"
    )
    activations: tuple[int, ...] = Field(description="activations that each stage holds at most")
    iteration_s: float = Field(ge=0, description="predicted iteration with it")
    unadapted_s: float = Field(
        ge=0, description="predicted iteration with the schedule for links without delay"
    )
    link_delay_s: tuple[float, ...] = Field(description="delays that it absorbs, by hop")
