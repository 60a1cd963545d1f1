"""The tally of kills counts every service, and the recoveries that were too late."""

from __future__ import annotations

from typing import Any, cast

from benchmarks.parts.chaos.process_kills import RECOVERY_LIMIT_S, KillTally
from infra.supervisor.stack import SERVICES


def test_the_fewest_kills_are_those_of_the_least_killed_service() -> None:
    tally = KillTally(per_service=2, killers=1)
    for service in SERVICES:
        tally.add(service.name, 1.0)
    tally.add("placement", RECOVERY_LIMIT_S)
    figures = cast("dict[str, Any]", tally.figures())
    assert figures["kills"] == len(SERVICES) + 1
    assert (figures["fewest_per_service"], figures["not_seen_again_in_time"]) == (1, 1)
    assert figures["by_service_s"]["placement"]["max"] == RECOVERY_LIMIT_S
    assert figures["deciders_recovery_s"]["count"] == 4


def test_a_service_that_was_never_killed_counts_as_zero() -> None:
    tally = KillTally(per_service=1, killers=1)
    tally.add("admission", 0.5)
    assert tally.figures()["fewest_per_service"] == 0
