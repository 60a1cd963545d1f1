"""PPO-clip as a control beside the evolution strategy: same network, features and windows.

Every score of a job, waiting or running, is a decision: the network's score plus Gaussian noise
(`simulator.kernel.exploration`). The reward of an hour is by how much fewer jobs are in the pool
than under the Gittins rank on the same jobs, in units of that rank's mean number of delayed jobs:
their sum is the gain in mean delay (Little's law), and what the arrivals decide cancels out.
Advantages are generalised (Schulman et al. 2016) over hours, with a linear critic of the pool's
features; the step is PPO's (Schulman et al. 2017) with Adam, its noise is of fixed width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.kernel.adam import Adam
from simulator.kernel.codes import COLUMNS, DRAW, INPUTS, JOB_FEATURES, PER_HIDDEN, SCORED_MS
from simulator.kernel.run import Exploration
from simulator.kernel.weights import Floats, split
from simulator.metrics.outcome import HOUR_S, Ints, ScheduleOutcome
from training.folds import Costs, Window, learned_rules, log_ratio

MOST_DECISIONS = 150_000
"""Scores of an episode that are changed, at most."""
RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class PpoOptions:
    """`episodes` windows per epoch; `sampled` decisions of each are used, `steps` times."""

    epochs: int = 60
    episodes: int = 16
    sampled: int = 4000
    steps: int = 6
    rate: float = 0.01
    clip: float = 0.2
    target_kl: float = 0.02
    deviation: float = 0.3
    """Standard deviation of the noise, on the scale of ln(Gittins rank times GPUs)."""
    discount: float = 0.95
    """Per hour (gamma)."""
    decay: float = 0.9
    """Lambda of the generalised advantage."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Decisions of an epoch: what the network saw [n, 12], noise in deviations [n], advantage."""

    inputs: Floats
    draws: Floats
    advantages: Floats


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Hours of an episode: rewards [h], the critic's inputs [h, c], and decisions by hour."""

    rewards: Floats
    pools: Floats
    decisions: Floats
    hour: Ints


def scores_of(theta: Floats, inputs: Floats) -> tuple[Floats, Floats]:
    """Return the network's scores [n], and its hidden units [n, H]."""
    linear, weights, biases, outputs = split(theta)
    hidden = np.tanh(inputs @ weights + biases)
    return inputs @ linear + hidden @ outputs, hidden


def gradient_of(theta: Floats, inputs: Floats, hidden: Floats, slope: Floats) -> Floats:
    """Return the gradient by `theta`, given that by the scores, `slope` [n]."""
    outputs = split(theta)[3]
    bent = slope[:, None] * outputs * (1.0 - hidden**2)
    units = np.empty((len(outputs), PER_HIDDEN))
    units[:, :INPUTS] = bent.T @ inputs
    units[:, INPUTS] = bent.sum(axis=0)
    units[:, INPUTS + 1] = slope @ hidden
    return np.concatenate((slope @ inputs, units.ravel()))


def surrogate(
    theta: Floats, old: Floats, samples: Samples, options: PpoOptions
) -> tuple[float, Floats, float]:
    """Return PPO's clipped objective, its gradient, and the mean divergence from `old`.

    `old` are the scores [n] at which the decisions were drawn; what was decided is these plus the
    noise.
    """
    scores, hidden = scores_of(theta, samples.inputs)
    shift = (scores - old) / options.deviation
    away = samples.draws - shift
    ratio = np.exp(0.5 * (samples.draws**2 - away**2))
    gain = np.minimum(
        ratio * samples.advantages,
        np.clip(ratio, 1 - options.clip, 1 + options.clip) * samples.advantages,
    )
    inside = np.where(samples.advantages > 0, ratio < 1 + options.clip, ratio > 1 - options.clip)
    slope = np.where(inside, ratio * samples.advantages, 0.0) * away / options.deviation
    gradient = gradient_of(theta, samples.inputs, hidden, slope / len(slope))
    return float(gain.mean()), gradient, float(0.5 * (shift**2).mean())


def hourly_jobs(outcome: ScheduleOutcome, begin_s: float, hours: int) -> Floats:
    """Return the mean number of jobs in the pool in each hour from `begin_s` on."""
    edges: Floats = begin_s + HOUR_S * np.arange(hours + 1, dtype=np.float64)
    submits, ends = np.sort(outcome.submit_s), np.sort(outcome.submit_s + outcome.jct_s)
    present: Floats = np.diff(_time_until(edges, submits) - _time_until(edges, ends)) / HOUR_S
    return present


def _time_until(edges: Floats, events: Floats) -> Floats:
    """Return the seconds since each event, summed over the events before each edge."""
    sums = np.concatenate(([0.0], np.cumsum(events)))
    before = np.searchsorted(events, edges)
    passed: Floats = before * edges - sums[before]
    return passed


def advantages_of(rewards: Floats, values: Floats, options: PpoOptions) -> Floats:
    """Return generalised advantages [h]; nothing follows the last hour."""
    following = np.append(values[1:], 0.0)
    errors = rewards + options.discount * following - values
    advantages, total = np.zeros(len(rewards)), 0.0
    for hour in range(len(rewards) - 1, -1, -1):
        total = errors[hour] + options.discount * options.decay * total
        advantages[hour] = total
    return advantages


def critic_inputs(decisions: Floats, hour: Ints, hours: int) -> Floats:
    """Return a constant, the pool's features as last seen in each hour, and their squares."""
    pools = np.zeros((hours, INPUTS - JOB_FEATURES))
    last = np.full(hours, -1)
    last[hour] = np.arange(len(hour))
    last = np.maximum.accumulate(last)
    pools[last >= 0] = decisions[last[last >= 0], JOB_FEATURES:INPUTS]
    return np.concatenate((np.ones((hours, 1)), pools, pools**2), axis=1)


@dataclass(slots=True)
class Ppo:
    """One training run."""

    theta: Floats
    options: PpoOptions
    random: np.random.Generator
    critic: Floats = field(init=False)
    adam: Adam = field(init=False)

    def __post_init__(self) -> None:
        zero = np.zeros_like(self.theta)
        self.critic = np.zeros(1 + 2 * (INPUTS - JOB_FEATURES))
        self.adam = Adam(self.options.rate, zero, zero.copy())

    def epoch(self, drawn: list[tuple[Window, Costs, ScheduleOutcome]]) -> float:
        """Take the steps of one epoch; return the mean logarithm of its ratios of delays.

        `drawn` are windows and costs, with the outcome under the base.
        """
        losses, trajectories = [], []
        for window, costs, base in drawn:
            draws = self.random.normal(size=MOST_DECISIONS)
            explored = Exploration(self.options.deviation, draws)
            ran = window.run(learned_rules(self.theta), costs, explored)
            losses.append(log_ratio(window.delay_s(ran.outcome), window.delay_s(base)))
            trajectories.append(trajectory_of(ran.outcome, base, ran.decisions))
        self.improve(self.samples_of(trajectories))
        return float(np.mean(losses))

    def samples_of(self, trajectories: list[Trajectory]) -> Samples:
        """Return a sample of the decisions with their advantages, and fit the critic."""
        parts, goals = [], []
        for own in trajectories:
            values = own.pools @ self.critic
            advantages = advantages_of(own.rewards, values, self.options)
            goals.append(values + advantages)
            count = min(len(own.decisions), self.options.sampled)
            chosen = self.random.choice(len(own.decisions), count, replace=False)
            rows = own.decisions[chosen]
            parts.append(np.column_stack((rows, advantages[own.hour[chosen]])))
        x, y = np.concatenate([own.pools for own in trajectories]), np.concatenate(goals)
        self.critic = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)
        every = np.concatenate(parts)
        advantage = every[:, COLUMNS]
        normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        return Samples(every[:, :INPUTS], every[:, DRAW], normal)

    def improve(self, samples: Samples) -> None:
        """Climb the objective, until the policy has moved far."""
        old = scores_of(self.theta, samples.inputs)[0]
        for _ in range(self.options.steps):
            _, gradient, divergence = surrogate(self.theta, old, samples, self.options)
            if divergence > 1.5 * self.options.target_kl:
                break
            self.theta = self.theta - self.adam.move(-gradient)


def trajectory_of(outcome: ScheduleOutcome, base: ScheduleOutcome, decisions: Floats) -> Trajectory:
    """Return the hours of an episode, to the end of the last job under either policy."""
    begin_s = float(outcome.submit_s[0])
    last_s = max(float((o.submit_s + o.jct_s).max()) for o in (outcome, base))
    hours = int((last_s - begin_s) // HOUR_S) + 1
    fewer = hourly_jobs(base, begin_s, hours) - hourly_jobs(outcome, begin_s, hours)
    delayed = float((base.jct_s - base.duration_s).sum()) / (hours * HOUR_S)
    hour = ((decisions[:, SCORED_MS] / 1000.0 - begin_s) // HOUR_S).astype(np.int64)
    pools = critic_inputs(decisions, hour, hours)
    return Trajectory(fewer / max(delayed, 1e-9), pools, decisions, hour)
