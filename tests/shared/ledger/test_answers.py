from __future__ import annotations

import pickle

from shared.ledger.answers import Answered


def test_an_answered_command_is_remembered() -> None:
    answered = Answered()
    answered.note("c1")
    assert "c1" in answered
    assert "c2" not in answered
    assert 7 not in answered


def test_only_the_last_ones_are_remembered() -> None:
    answered = Answered(remembered=2)
    for command_id in ("c1", "c2", "c2", "c3"):
        answered.note(command_id)
    assert [c in answered for c in ("c1", "c2", "c3")] == [False, True, True]


def test_it_survives_a_snapshot() -> None:
    answered = Answered()
    answered.note("c1")
    assert pickle.loads(pickle.dumps(answered)) == answered
