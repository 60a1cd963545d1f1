"""The four sides of the ablation are simulated on the same jobs by the live deciders."""

from __future__ import annotations

from typing import Any, cast

from benchmarks.ablation import SIDES, AblationOptions, run


async def test_every_side_has_figures_of_the_same_jobs() -> None:
    result = await run(
        AblationOptions(trace="synthetic", skip=0, jobs=40, load=1.0), lambda line: None
    )
    sides = cast("dict[str, Any]", result["sides"])
    assert list(sides) == list(SIDES)
    assert sides["base+greedy"]["jct_gain"] == 0
    assert all(side["mean_wait_s"] >= 0 and side["mean_jct_s"] > 0 for side in sides.values())
