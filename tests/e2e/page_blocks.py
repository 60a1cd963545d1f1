"""Commands of a page, run on a stand: a block of them with some words changed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.agents.jobs import output
from tests.e2e.stand import Stand
from tests.operations.machines_page import environment
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[str]:
    """Return the commands of a page in `docs`, block by block."""
    return BLOCKS.findall((ROOT / "docs" / page).read_text())


def run_block(stand: Stand, block: str, changes: Mapping[str, str]) -> str:
    """Run the commands of a block with these words changed; return what they print."""
    for old, new in changes.items():
        block = block.replace(old, new)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", block],
        env=environment(stand.stack.data_dir),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit_block(stand: Stand, block: str, changes: Mapping[str, str]) -> str:
    """Submit the job of a block as that of `ada`; return its id."""
    here = {"berth submit": "berth submit --json", "--tenant vision": "--tenant ada"}
    matched = re.search(r'"job_id": "([^"]+)"', run_block(stand, block, here | dict(changes)))
    assert matched is not None
    return matched[1]


def lines(stand: Stand, job_id: str, pattern: str) -> list[tuple[str, ...]]:
    """Return what matches; processes of one worker may write into one line."""
    return [match.groups() for match in re.finditer(pattern, "\n".join(output(stand, job_id)))]
