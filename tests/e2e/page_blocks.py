"""Commands of a page, run on a stand: a block of them with some words changed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.e2e.agents.jobs import output
from tests.e2e.stand import Stand
from tests.pages import ROOT, blocks, environment, run_shell
from tests.patience import PATIENCE_S


def blocks_of(page: str) -> list[str]:
    """Return the commands of a page in `docs`, block by block."""
    return blocks((ROOT / "docs" / page).read_text())


def run_block(stand: Stand, block: str, changes: Mapping[str, str]) -> str:
    """Run the commands of a block with these words changed; return what they print."""
    for old, new in changes.items():
        block = block.replace(old, new)
    return run_shell(block, environment(stand.stack.data_dir), ROOT, PATIENCE_S)


def submit_block(stand: Stand, block: str, changes: Mapping[str, str]) -> str:
    """Submit the job of a block as that of `ada`; return its id."""
    here = {"berth submit": "berth submit --json", "--tenant vision": "--tenant ada"}
    matched = re.search(r'"job_id": "([^"]+)"', run_block(stand, block, here | dict(changes)))
    assert matched is not None
    return matched[1]


def lines(stand: Stand, job_id: str, pattern: str) -> list[tuple[str, ...]]:
    """Return what matches; processes of one worker may write into one line."""
    return [match.groups() for match in re.finditer(pattern, "\n".join(output(stand, job_id)))]
