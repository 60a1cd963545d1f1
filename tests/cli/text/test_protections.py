"""A running job says until when a stop of it was put off."""

from __future__ import annotations

import time
from typing import get_args

from cli.text.protections import DEFERRALS, deferral_lines
from cli.text.times import clock
from services.placement.core.pool.job import ProtectionRule


def test_a_stop_that_was_put_off_has_its_time_and_its_rule() -> None:
    until = 60_000 + time.time_ns() // 1_000_000
    deferral = {"until": until, "rule": "checkpoint", "victims": 1}
    ahead = f"it may be stopped from {clock(until)}; until then it runs to its next checkpoint"
    assert deferral_lines(deferral) == [f"a job of better rank waits for its GPUs: {ahead}"]
    (due,) = deferral_lines({**deferral, "by_job_id": "a"}, as_of=until + 1)
    assert due.startswith(f"a stop for a job of better rank (a) was put off until {clock(until)}")
    assert deferral_lines(None) == []


def test_every_rule_that_defers_a_stop_has_its_words() -> None:
    of_the_pool = {"", "no_checkpoints", "loss_budget"}
    assert DEFERRALS.keys() == set(get_args(ProtectionRule)) - of_the_pool
