"""A run ends with its CPU time, and with files only where a folder is named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.parts.result import finish


def page_of(result: dict[str, Any]) -> str:
    return f"# A page\n\n{result['figure']}\n"


def test_both_files_are_written_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "new"
    result = finish({"bench": "a", "figure": 3}, time.process_time(), str(folder), page_of)
    assert sorted(path.name for path in folder.iterdir()) == ["a.json", "a.md"]
    assert json.loads((folder / "a.json").read_text()) == result
    assert (folder / "a.md").read_text() == "# A page\n\n3\n"


def test_without_a_folder_nothing_is_written_or_rendered() -> None:
    result = finish({"bench": "a"}, time.process_time() - 2.0, "", page_of)
    assert result["cpu_s"] == 2.0
