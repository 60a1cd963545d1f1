"""The end of a benchmark's run: its CPU time, and its files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.parts.command import Json


def finish(result: Json, began_s: float, out: str, render: Callable[[Any], str]) -> Json:
    """Add the CPU seconds since `began_s`; with a folder `out`, write JSON and page there."""
    result["cpu_s"] = round(time.process_time() - began_s, 1)
    if out:
        write_result(Path(out), str(result["bench"]), result, render(result))
    return result


def write_result(folder: Path, name: str, result: Json, page: str) -> None:
    """Write `<name>.json` and `<name>.md` below `folder`, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(page)
