"""Chooses the level to apply now: the least expected loss, within a bound for the worst case.

Loss is the time by which an iteration takes longer than a healthy one, summed since the fault
began, and the time for which levels stopped the job. Three rules, in this order:

- The guard: levels that were applied and have not paid for themselves, and the next one, cost no
  more than the dearest level. So no fault ever costs more than doing nothing and one level.
- With few observed faults the break-even rule: a level is applied when the accumulated loss
  reaches its cost, as with skis that are rented until their price is paid.
- Else the level, or the wait, of least expected loss by the durations of observed faults.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.failslow.core.mitigation.durations import Survival
from shared.contracts.mitigation import LevelName

LEARNED_FROM = 5
"""Observed faults from which durations decide."""
OVERDUE = 2.0
"""Multiple of a level's cost at which accumulated loss applies it, whatever durations say."""
GRID_STEPS = 28
SHORTEST_STEP_S = 2.0
GRID_GROWTH = 1.37
"""The grid reaches 12 hours beyond the present."""


@dataclass(frozen=True, slots=True)
class Option:
    """A level for the open faults: `remaining` is the slowdown that it leaves."""

    level: LevelName
    cost_s: float
    remaining: float


@dataclass(frozen=True, slots=True)
class Situation:
    """`slowdown` is the present one, 0.25 if iterations take 1.25 times as long.

    `lost_s` is what the faults have cost so far, `deficit_s` the cost of applied levels less what
    they have saved.
    """

    elapsed_s: float
    slowdown: float
    lost_s: float
    deficit_s: float = 0.0
    applied: tuple[LevelName, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The level to apply, `nothing` to wait; `expected_gain_s` is beside waiting for ever."""

    level: LevelName
    rule: str
    cost_s: float = 0.0
    expected_gain_s: float = 0.0
    remaining: float = 0.0


def lost_share(slowdown: float) -> float:
    """Return the part of each second that a slowdown loses."""
    return slowdown / (1 + slowdown)


def choose(
    situation: Situation, options: Sequence[Option], survival: Survival, dearest_s: float
) -> Choice:
    """Return the level to apply now; `dearest_s` is the bound on what levels may cost in vain."""
    helpful = [option for option in options if is_helpful(option, situation)]
    allowed = [o for o in helpful if max(0.0, situation.deficit_s) + o.cost_s <= dearest_s]
    if not allowed:
        return Choice("nothing", "guard" if helpful else "no level helps", 0, 0, situation.slowdown)
    expected = _expected_losses(situation, helpful, survival)
    if survival.count < LEARNED_FROM:
        chosen, rule = break_even(situation, allowed), "break even"
    else:
        chosen, rule = _least(situation, allowed, expected), "observed durations"
        if chosen is None:
            chosen, rule = break_even(situation, allowed, OVERDUE), "overdue"
    if chosen is None:
        return Choice("nothing", "wait", 0, 0, situation.slowdown)
    gain_s = expected.endured_s - expected.after_s[chosen.level]
    return Choice(chosen.level, rule, chosen.cost_s, gain_s, chosen.remaining)


def is_helpful(option: Option, situation: Situation) -> bool:
    return option.level not in situation.applied and option.remaining < situation.slowdown


def break_even(
    situation: Situation, options: Sequence[Option], multiple: float = 1.0
) -> Option | None:
    """Return the best of the levels whose cost the accumulated loss has reached."""
    due = [option for option in options if situation.lost_s >= multiple * option.cost_s]
    return min(due, key=lambda option: (option.remaining, option.cost_s), default=None)


@dataclass(frozen=True, slots=True)
class _Expected:
    """Expected losses from now on: with no level, and with each applied at once."""

    endured_s: float
    waited_s: float
    after_s: Mapping[LevelName, float]


def _least(situation: Situation, options: Sequence[Option], expected: _Expected) -> Option | None:
    best = min(options, key=lambda option: (expected.after_s[option.level], option.cost_s))
    return best if expected.after_s[best.level] < expected.waited_s else None


def _expected_losses(
    situation: Situation, options: Sequence[Option], survival: Survival
) -> _Expected:
    """Return expected losses by backward induction over time and present slowdown.

    A state is a moment and the slowdown that the last level left; in each, the job waits for a
    step or pays for a level that leaves less.
    """
    times = _grid(situation.elapsed_s)
    alive = [max(survival.at(time_s), 1e-12) for time_s in times]
    slowdowns = sorted({situation.slowdown, *(option.remaining for option in options)})
    endured: list[float] = [_tail(times[-1], slowdowns[-1])] * len(times)
    value = {slowdown: [_tail(times[-1], slowdown)] * len(times) for slowdown in slowdowns}
    waited = after = 0.0
    for step in range(len(times) - 2, -1, -1):
        stays = alive[step + 1] / alive[step]
        span_s = (times[step + 1] - times[step]) * (1 + stays) / 2
        endured[step] = lost_share(situation.slowdown) * span_s + stays * endured[step + 1]
        for slowdown in slowdowns:
            own = value[slowdown]
            waited = lost_share(slowdown) * span_s + stays * own[step + 1]
            after = min(
                (
                    _after(option, value, times, alive, step)
                    for option in options
                    if option.remaining < slowdown
                ),
                default=waited,
            )
            own[step] = min(waited, after)
    after_s = {option.level: _after(option, value, times, alive, 0) for option in options}
    return _Expected(endured[0], waited, after_s)


def _after(
    option: Option,
    value: Mapping[float, Sequence[float]],
    times: Sequence[float],
    alive: Sequence[float],
    step: int,
) -> float:
    """Return cost and further loss of a level applied at a step; the fault may end meanwhile."""
    at_s, states = times[step] + option.cost_s, value[option.remaining]
    later = min(max(bisect_left(times, at_s), step + 1), len(times) - 1)
    part = min(1.0, (at_s - times[later - 1]) / (times[later] - times[later - 1]))
    before_s, after_s = alive[later - 1] * states[later - 1], alive[later] * states[later]
    return option.cost_s + ((1 - part) * before_s + part * after_s) / alive[step]


def _grid(elapsed_s: float) -> list[float]:
    times, step_s = [elapsed_s], SHORTEST_STEP_S
    for _ in range(GRID_STEPS):
        times.append(times[-1] + step_s)
        step_s *= GRID_GROWTH
    return times


def _tail(elapsed_s: float, slowdown: float) -> float:
    """Return the loss beyond the grid: the fault lasts as long again as it has."""
    return lost_share(slowdown) * elapsed_s
