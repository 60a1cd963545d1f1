from __future__ import annotations

from typing import get_args

from benchmarks.parts.league.entrants import OURS, ROUNDS, entrants, left_out
from shared.contracts.pools import BasePolicy
from shared.schedulers.registry import scheduler_classes


def test_each_policy_and_scheduler_competes_or_has_a_reason() -> None:
    queue = {own.rules.policy for own in entrants() if own.rules is not None}
    assert queue | set(left_out()) >= set(get_args(BasePolicy))
    for slow in (False, True):
        rounds = {own.scheduler for own in entrants(slow=slow) if own.scheduler}
        reasons = [name for name in left_out(slow) if name.endswith(ROUNDS)]
        missing = {name.removesuffix(f", {ROUNDS}") for name in reasons}
        assert rounds.isdisjoint(missing)
        assert rounds | missing == set(scheduler_classes())


def test_names_differ_and_ours_is_the_first() -> None:
    names = [own.name for own in entrants()]
    assert len(set(names)) == len(names)
    assert names[0] == OURS


def test_what_uses_true_run_times_cannot_be_deployed() -> None:
    true = [own for own in entrants() if own.rules and own.rules.runtime == "oracle"]
    by_time = [own for own in true if own.rules and own.rules.policy in ("srsf", "sjf", "srtf")]
    assert [own.is_deployable for own in by_time] == [False]
    assert all(own.is_deployable for own in entrants() if own not in by_time)


def test_a_quick_run_has_both_kinds() -> None:
    assert {bool(own.scheduler) for own in entrants(quick=True)} == {False, True}
