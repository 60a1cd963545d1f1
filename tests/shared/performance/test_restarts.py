from __future__ import annotations

from shared.performance.restarts import FREE, POLLUX, SIA_S, RestartCosts


def test_a_larger_gang_restarts_longer() -> None:
    assert RestartCosts(20.0, 2.0).seconds(8) == 36.0
    assert (FREE.seconds(64), POLLUX.seconds(1), POLLUX.seconds(64)) == (0.0, 30.0, 30.0)
    assert max(SIA_S.values()) == SIA_S["imagenet"]
