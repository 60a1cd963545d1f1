from __future__ import annotations

from pathlib import Path

import pytest

from simulator.rounds.artifacts import artifact_folder, trace_file


def test_artifacts_lie_beside_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "anchors" / "pollux").mkdir(parents=True)
    monkeypatch.setenv("BERTH_TRACES", str(tmp_path / "traces"))
    assert artifact_folder("pollux") == tmp_path / "anchors" / "pollux"
    assert artifact_folder("muri") is None
    assert trace_file("gavel_throughputs") is None
