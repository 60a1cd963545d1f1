"""PPO-clip as SpinningUp and RLTune have it, in numpy: one reward at the end of an episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.parts.rltune.episode import WINDOW, Floats, Ints, RltuneEpisode, run_episode
from benchmarks.parts.rltune.network import ACTOR, FEATURES, backward, forward, initial, layers_of
from simulator.kernel.adam import Adam

CRITIC = (WINDOW * FEATURES, 32, 16, 8, 1)
Jobs = tuple[Floats, Floats, Ints]
"""Submission and run time in s and GPUs of consecutive jobs, each [n]."""


@dataclass(frozen=True, slots=True)
class PpoOptions:
    """For minutes of training instead of a day: RLTune has 100 epochs of 100 episodes with 80 steps
    of either network, rates of 3e-4 (actor) and 1e-3 (critic), and a `target_kl` of 0.01.
    """

    epochs: int = 60
    episodes: int = 12
    actor_steps: int = 10
    critic_steps: int = 10
    actor_rate: float = 3e-3
    critic_rate: float = 3e-3
    target_kl: float = 0.03
    clip: float = 0.2
    discount: float = 0.97
    """Lambda of the generalised advantage; gamma is 1."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Decisions of all episodes of an epoch; rows of `features` are those of the jobs in sight."""

    features: Floats
    first: Ints
    """[decisions] index of the first row."""
    counts: Ints
    picked: Ints
    """[decisions] index of the picked row."""
    log_chances: Floats
    returns: Floats
    """[decisions] the reward of the episode."""
    lengths: Ints
    """Decisions of each episode."""


def mean_wait_s(jobs: Jobs, episode: RltuneEpisode) -> float:
    return float((episode.start_s - jobs[0]).mean())


def base_wait_s(jobs: Jobs, nodes: int) -> float:
    """Return the mean wait under FCFS that blocks, with the same allocation."""
    zero = np.zeros(sum((a + 1) * b for a, b in zip(ACTOR, ACTOR[1:], strict=False)))
    return mean_wait_s(jobs, run_episode(jobs, nodes, zero, np.full(len(jobs[0]), -1.0)))


def reward_of(base_s: float, ours_s: float) -> float:
    """Return the gain over the base, relative to the larger of both."""
    return (base_s - ours_s) / max(base_s, ours_s, 1.0)


def roll_out(
    draw: Callable[[], Jobs], nodes: int, actor: Floats, random: np.random.Generator, count: int
) -> Rollout:
    """Run episodes on jobs that `draw` returns."""
    episodes, rewards = [], []
    for _ in range(count):
        jobs = draw()
        episode = run_episode(jobs, nodes, actor, random.random(len(jobs[0])))
        episodes.append(episode)
        rewards.append(reward_of(base_wait_s(jobs, nodes), mean_wait_s(jobs, episode)))
    counts = np.concatenate([episode.counts for episode in episodes])
    first = np.cumsum(counts) - counts
    lengths = np.array([len(episode.counts) for episode in episodes], np.int64)
    return Rollout(
        np.concatenate([episode.features for episode in episodes]),
        first,
        counts,
        first + np.concatenate([episode.picks for episode in episodes]),
        np.concatenate([episode.log_chances for episode in episodes]),
        np.repeat(np.array(rewards), lengths),
        lengths,
    )


def log_chances(logits: Floats, rollout: Rollout) -> tuple[Floats, Floats]:
    """Return the log probability of every row among those of its decision, and of the picked."""
    top = np.maximum.reduceat(logits, rollout.first)
    shifted = logits - np.repeat(top, rollout.counts)
    totals = np.log(np.add.reduceat(np.exp(shifted), rollout.first))
    every = shifted - np.repeat(totals, rollout.counts)
    return every, every[rollout.picked]


def advantages(values: Floats, rollout: Rollout, discount: float) -> Floats:
    """Return generalised advantages with gamma 1, normalised over all decisions."""
    parts, at = [], 0
    for length in rollout.lengths:
        own = values[at : at + length]
        following = np.append(own[1:], rollout.returns[at])
        total, own_advantage = 0.0, np.zeros(length)
        for step in range(length - 1, -1, -1):
            total = following[step] - own[step] + discount * total
            own_advantage[step] = total
        parts.append(own_advantage)
        at += length
    every = np.concatenate(parts)
    normal: Floats = (every - every.mean()) / (every.std() + 1e-8)
    return normal


def improve_actor(
    theta: Floats, adam: Adam, rollout: Rollout, advantage: Floats, options: PpoOptions
) -> Floats:
    """Return the weights after up to `actor_steps` steps; it stops where the policy moved far."""
    for _ in range(options.actor_steps):
        layers = layers_of(theta, ACTOR)
        values = forward(layers, rollout.features)
        every, picked = log_chances(values[-1][:, 0], rollout)
        if float((rollout.log_chances - picked).mean()) > 1.5 * options.target_kl:
            break
        ratio = np.exp(picked - rollout.log_chances)
        inside = np.where(advantage > 0, ratio < 1 + options.clip, ratio > 1 - options.clip)
        slope = np.where(inside, ratio * advantage, 0.0) / len(advantage)
        by_logit = np.exp(every) * np.repeat(slope, rollout.counts)
        by_logit[rollout.picked] -= slope
        theta = theta - adam.move(backward(layers, values, by_logit[:, None]))
    return theta


def critic_inputs(rollout: Rollout) -> Floats:
    """Return the observation of each decision, flat, padded as RLTune pads it."""
    padding = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    padded = np.tile(padding, (len(rollout.counts), WINDOW, 1))
    decision = np.repeat(np.arange(len(rollout.counts)), rollout.counts)
    slot = np.arange(len(rollout.features)) - np.repeat(rollout.first, rollout.counts)
    padded[decision, slot] = rollout.features
    return padded.reshape(len(padded), -1)


def improve_critic(
    theta: Floats, adam: Adam, inputs: Floats, returns: Floats, options: PpoOptions
) -> Floats:
    for _ in range(options.critic_steps):
        layers = layers_of(theta, CRITIC)
        values = forward(layers, inputs)
        slope = 2.0 * (values[-1][:, 0] - returns) / len(returns)
        theta = theta - adam.move(backward(layers, values, slope[:, None]))
    return theta


def train(
    draw: Callable[[], Jobs], nodes: int, options: PpoOptions, random: np.random.Generator
) -> Iterator[tuple[Floats, float]]:
    """Yield the actor and the mean reward of its predecessor after each epoch."""
    actor, critic = initial(ACTOR, random), initial(CRITIC, random)
    actor_moments = Adam(options.actor_rate, np.zeros_like(actor), np.zeros_like(actor))
    critic_moments = Adam(options.critic_rate, np.zeros_like(critic), np.zeros_like(critic))
    for _ in range(options.epochs):
        rollout = roll_out(draw, nodes, actor, random, options.episodes)
        inputs = critic_inputs(rollout)
        values = forward(layers_of(critic, CRITIC), inputs)[-1][:, 0]
        advantage = advantages(values, rollout, options.discount)
        actor = improve_actor(actor, actor_moments, rollout, advantage, options)
        critic = improve_critic(critic, critic_moments, inputs, rollout.returns, options)
        yield actor, float(rollout.returns.mean())
