"""The conformance suite, run for one engine by the command that makes docs/backends.md."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

SUITE = "tests.services.executor.conformance.matrix"


async def conformance_of(engine: str) -> dict[str, str]:
    """Return `pass`, `fail` or `not applicable: reason` of each case."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", SUITE, "--only", engine, "--json", str(out), stdout=sys.stderr
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        if not out.exists():
            raise RuntimeError(f"{SUITE}: exit code {code} without outcomes")
        outcomes: dict[str, str] = json.loads(out.read_text())
    return outcomes
