"""The benchmark of the reporter measures every case; no figure decides."""

from __future__ import annotations

from typing import Any, cast

import pytest

from benchmarks.reporter import ROUND_CALLS, ReporterBenchOptions, run


async def test_every_case_has_its_figures() -> None:
    result = await run(ReporterBenchOptions(rounds=20), lambda line: None)
    cases = cast("dict[str, dict[str, Any]]", result["cpu_us"])
    assert set(cases) == {"report", "iteration", "sendto", "full", "gone", "absent"}
    assert all(0 < figures["median"] <= figures["p99"] for figures in cases.values())
    assert cast("float", result["report_to_sendto"]) > 0
    assert result["calls"] == 20 * ROUND_CALLS
    medians = [cast("float", figures["median"]) for figures in cases.values()]
    assert result["met"] == (max(medians) <= cast("float", result["at_most_us"]))


async def test_a_single_round_has_no_percentiles() -> None:
    with pytest.raises(ValueError, match="too few rounds: 1; at least 2"):
        await run(ReporterBenchOptions(rounds=1), lambda line: None)
