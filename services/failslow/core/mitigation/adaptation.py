"""The pipeline schedule that absorbs the delays of a job's links, if it gains enough. Pure."""

from __future__ import annotations

from shared.contracts.parallelism import AdaptedSchedule, PipelineProfile
from shared.pipeline.model import Pipeline, PipelineError, checked
from shared.pipeline.schedules import adapted_by_rule, one_forward_one_backward, zero_bubble
from shared.pipeline.timeline import Timeline, replay

LEAST_GAIN = 0.02
"""Part of the iteration that a schedule has to save to be worth advice."""
SHORTEST_S, LONGEST_S = 1e-6, 1e4
"""Bounds of a plausible pass of a micro-batch; a job reports any numbers."""
MOST_CELLS = 8192
"""Micro-batches of all stages: a plan for more would hold the decider up."""


def adapted_schedule(profile: PipelineProfile) -> AdaptedSchedule | None:
    """Return the schedule; None where the present one absorbs the delays, or it would not help."""
    pipeline = pipeline_of(profile)
    if pipeline is None or pipeline.stages * pipeline.microbatches > MOST_CELLS:
        return None
    adapted, before = adapted_by_rule(pipeline), unadapted(pipeline)
    if adapted.timeline.makespan > (1 - LEAST_GAIN) * before.makespan:
        return None
    return AdaptedSchedule(
        warmup=adapted.warmup,
        activations=adapted.timeline.peak_activations(),
        iteration_s=adapted.timeline.makespan,
        unadapted_s=before.makespan,
        link_delay_s=pipeline.link_delay,
    )


def pipeline_of(profile: PipelineProfile) -> Pipeline | None:
    """Return the pipeline; None where the reported numbers make none."""
    passes, delays = (*profile.forward_s, *profile.backward_s), profile.link_delay_s
    if (
        min(passes, default=0.0) < SHORTEST_S
        or max((*passes, *profile.weight_s, *delays)) > LONGEST_S
    ):
        return None
    try:
        return checked(
            len(profile.forward_s),
            profile.microbatches,
            profile.forward_s,
            profile.backward_s,
            profile.weight_s,
            profile.link_delay_s,
            profile.memory,
        )
    except PipelineError:
        return None


def unadapted(pipeline: Pipeline) -> Timeline:
    """Return the timeline of the schedule for links without delay, under the delays.

    It is 1F1B where the backward pass for the weights is not on its own, else zero-bubble.
    """
    if any(pipeline.weight):
        return replay(pipeline, zero_bubble(pipeline, 2))
    return replay(pipeline, one_forward_one_backward(pipeline), merged=True)
