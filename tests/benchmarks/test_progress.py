"""`berth bench progress`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.progress import ProgressOptions, run


@pytest.mark.parts
def test_both_pools_are_compared_and_a_page_is_written(tmp_path: Path) -> None:
    lines: list[str] = []
    options = ProgressOptions("synthetic:helios", jobs=600, parts=1, seeds=1, out=str(tmp_path))
    result = asyncio.run(run(options, lines.append))
    document = json.loads((tmp_path / "progress.json").read_text())
    assert document["cells"] == json.loads(json.dumps(result["cells"]))
    assert [cell["setting"] for cell in document["cells"]] == ["gittins", "easy"]
    assert document["goals_met"] + document["goals_not_met"] == 4
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jobs", ProgressOptions(jobs=0)),
        ("parts", ProgressOptions(parts=0)),
        ("seeds", ProgressOptions(seeds=0)),
    ],
)
def test_a_wrong_option_is_refused(name: str, options: ProgressOptions) -> None:
    with pytest.raises(ValueError, match=f"{name}: 0, must be at least 1"):
        asyncio.run(run(options, print))
