"""Decima's network: messages along the stages of jobs, then scores of stages and of limits.

Each stage gets the messages of its children, the last stages first, so that a sum over paths ahead
reaches it; a job is summed over its stages, and the cluster over its jobs. Layers are smaller than
the published ones (700 weights instead of 13,000), and scores are added to those of the weighted
fair heuristic: with all last layers zero it decides as that does. One deviation beside that: where
no stage scores above 0, free executors stay idle until the next event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from simulator.stage_dags.graph import Floats, Graph, graph_of
from simulator.stage_dags.picks import shares
from simulator.stage_dags.world import Choice, OpenJob, Pick, Situation

Matrix: TypeAlias = tuple[Floats, Floats]
"""Weights [inputs, outputs] and biases [outputs]."""
Layers: TypeAlias = dict[str, tuple[Matrix, Matrix]]

FEATURES, JOB_FEATURES, HIDDEN, SUMMARY = 5, 3, 8, 4
PARTS = {
    "stage": (FEATURES, SUMMARY),
    "message": (SUMMARY, SUMMARY),
    "sum": (SUMMARY, SUMMARY),
    "job": (FEATURES + SUMMARY, SUMMARY),
    "cluster": (SUMMARY, SUMMARY),
    "stage score": (FEATURES + 3 * SUMMARY, 1),
    "limit score": (JOB_FEATURES + 2 * SUMMARY + 1, 1),
}
"""Inputs and outputs of each network of two layers."""
SCORES = ("stage score", "limit score")
FULL_WORK_S, FULL_TASKS = 100.0, 20.0
"""Work and tasks of a stage at which their features are 1."""
LEAK = 0.2
AT_ITS_JOB, AWAY = 3.0, 4.0
"""By how much the stages of a job that has idle executors lead, and what a limit loses per part of
the executors by which it is not the heuristic's."""


def size() -> int:
    """Return the number of weights."""
    return sum((inputs + 1) * HIDDEN + (HIDDEN + 1) * outputs for inputs, outputs in PARTS.values())


def first_weights(random: np.random.Generator) -> Floats:
    """Return weights by which the network decides as the heuristic."""
    parts: list[Floats] = []
    for name, (inputs, outputs) in PARTS.items():
        last = 0.0 if name in SCORES else np.sqrt(1.0 / HIDDEN)
        parts += [
            random.normal(size=inputs * HIDDEN) * np.sqrt(1.0 / inputs),
            np.zeros(HIDDEN),
            random.normal(size=HIDDEN * outputs) * last,
            np.zeros(outputs),
        ]
    return np.concatenate(parts)


def layers_of(weights: Floats) -> Layers:
    layers: Layers = {}
    at = 0
    for name, (inputs, outputs) in PARTS.items():
        own = []
        for rows, columns in ((inputs, HIDDEN), (HIDDEN, outputs)):
            matrix = weights[at : at + rows * columns].reshape(rows, columns)
            at += rows * columns
            own.append((matrix, weights[at : at + columns]))
            at += columns
        layers[name] = (own[0], own[1])
    return layers


def applied(layers: tuple[Matrix, Matrix], rows: Floats) -> Floats:
    """Return the outputs [n, outputs] of rows [n, inputs]."""
    (first, first_bias), (last, last_bias) = layers
    hidden = rows @ first
    hidden += first_bias
    np.maximum(hidden, LEAK * hidden, out=hidden)
    result: Floats = hidden @ last
    result += last_bias
    return result


def embeddings(layers: Layers, graph: Graph, rows: Floats, is_open: Floats) -> Floats:
    """Return what messages make of the rows [n, `SUMMARY`]; ended stages send none."""
    values = applied(layers["stage"], rows)
    messages = np.zeros_like(values)
    for first, end, children in graph.levels:
        if first:
            values[first:end] += applied(layers["sum"], children @ messages[:first])
        own = applied(layers["message"], values[first:end])
        messages[first:end] = own * is_open[first:end, None]
    return values


def by_network(weights: Floats, alpha: float) -> Pick:
    """Return the policy of the network beside the weighted fair heuristic that leaves idle."""
    layers = layers_of(weights)
    kept: dict[tuple[int, ...], Graph] = {}

    def pick(situation: Situation) -> Choice | None:
        numbers = tuple(job.number for job in situation.jobs)
        if numbers not in kept:
            kept.clear()
            kept[numbers] = graph_of(situation.jobs)
        known = known_of(layers, kept[numbers], situation)
        share = np.array(shares(situation.jobs, situation.executors, alpha))
        best = best_stage(layers, kept[numbers], situation, known, share)
        if best is None:
            return None
        index, stage = best
        limit = best_limit(layers, situation, known, index, float(share[index]))
        return Choice(situation.jobs[index], stage, limit)

    return pick


class Known(NamedTuple):
    """The features of jobs [jobs, 3] and stages [rows, 5], and what messages make of them."""

    job_rows: Floats
    rows: Floats
    of_rows: Floats
    of_jobs: Floats
    of_cluster: Floats


def known_of(layers: Layers, graph: Graph, situation: Situation) -> Known:
    executors = situation.executors
    free = situation.free / executors
    job_rows = np.array(
        [(job.busy / executors, 2.0 if job.idle else -2.0, free) for job in situation.jobs]
    )
    unfinished = graph.by_row([job.unfinished for job in situation.jobs])
    rows = np.empty((len(unfinished), FEATURES))
    rows[:, :JOB_FEATURES] = job_rows[graph.job_of]
    rows[:, JOB_FEATURES] = unfinished * graph.task_s / FULL_WORK_S
    rows[:, JOB_FEATURES + 1] = unfinished / FULL_TASKS
    is_open = (unfinished > 0).astype(np.float64)
    of_rows = embeddings(layers, graph, rows, is_open)
    summands = applied(layers["job"], np.hstack((rows, of_rows))) * is_open[:, None]
    of_jobs = graph.members @ summands
    of_cluster = applied(layers["cluster"], of_jobs).sum(axis=0)
    return Known(job_rows, rows, of_rows, of_jobs, of_cluster)


def best_stage(
    layers: Layers, graph: Graph, situation: Situation, known: Known, share: Floats
) -> tuple[int, int] | None:
    """Return the job, by its place, and the stage with the highest score.

    None where no score is above 0, unless no executor works.
    """
    jobs = situation.jobs
    candidates = [(index, stage) for index, job in enumerate(jobs) for stage in job.runnable()]
    chosen = graph.row_of[[graph.first_of[index] + stage for index, stage in candidates]]
    owners = graph.job_of[chosen]
    of_cluster = np.broadcast_to(known.of_cluster, (len(chosen), SUMMARY))
    inputs = np.hstack(
        (known.rows[chosen], known.of_rows[chosen], known.of_jobs[owners], of_cluster)
    )
    prior = job_prior(jobs, share)[owners] + graph.critical[chosen] / 2.0
    scores = applied(layers["stage score"], inputs)[:, 0] + prior
    best = int(scores.argmax())
    if scores[best] <= 0.0 and any(job.busy for job in jobs):
        return None
    return candidates[best]


def best_limit(layers: Layers, situation: Situation, known: Known, index: int, share: float) -> int:
    """Return the limit of executors of a job with the highest score; at least one more works."""
    executors, busy = situation.executors, situation.jobs[index].busy
    possible = np.arange(busy + 1, executors + 1)
    fixed = np.concatenate((known.job_rows[index], known.of_jobs[index], known.of_cluster))
    inputs = np.empty((len(possible), len(fixed) + 1))
    inputs[:, :-1] = fixed
    inputs[:, -1] = possible / executors
    away = np.abs(possible - max(math.ceil(share), busy + 1)) / executors
    scores = applied(layers["limit score"], inputs)[:, 0] - AWAY * away
    return int(possible[int(scores.argmax())])


def job_prior(jobs: Sequence[OpenJob], share: Floats) -> Floats:
    """Return by how much the stages of each job lead under the heuristic; full ones are below 0."""
    busy = np.array([job.busy for job in jobs], np.float64)
    has_idle = np.array([job.idle > 0 for job in jobs])
    lead = np.maximum(1.0 - busy / share + AT_ITS_JOB * has_idle, 0.0)
    prior: Floats = np.where(busy < np.ceil(share), 1.0 + lead, -1.0)
    return prior
