"""A benchmark replays the trace that is named, else the shared ones, else synthetic ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.parts.traces import chosen_traces
from simulator.workload.locate import VARIABLE

SHARED, SYNTHETIC = ("philly", "helios_venus"), ("synthetic:helios",)


def test_shared_traces_are_taken_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert chosen_traces("", SHARED, SYNTHETIC) == SYNTHETIC
    (tmp_path / "helios_venus.parquet").touch()
    assert chosen_traces("", SHARED, SYNTHETIC) == ("helios_venus",)
    assert chosen_traces("other", SHARED, SYNTHETIC) == ("other",)
