"""An error that no process survives ends it with an exit code and one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process


def ends(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_work_that_is_cancelled_without_a_request_ends_the_process() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.bus.fatal import supervise\n"
        "async def dies():\n"
        "    raise asyncio.CancelledError\n"
        "async def main():\n"
        "    supervise(dies(), 'reader')\n"
        "    await asyncio.sleep(30)\n"
        "asyncio.run(main())"
    )
    assert (done.returncode, "reader" in done.stderr) == (70, True)


def test_a_broken_ledger_ends_the_process_with_one_line_that_names_the_runbook() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.ledger.errors import TailLost\n"
        "from shared.bus.fatal import run_to_end\n"
        "async def main():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(reads())\n"
        "async def reads():\n"
        "    raise TailLost('placement-0 ends at 3: tail lost')\n"
        "run_to_end(main(), 'projector')"
    )
    line = "projector stops: TailLost: placement-0 ends at 3: tail lost; see docs/operations/"
    assert done.returncode == 71
    assert done.stderr.startswith(line) and done.stderr.count("\n") == 1


def test_a_ledger_that_breaks_in_a_group_of_tasks_ends_the_process_as_broken() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.ledger.errors import TailLost\n"
        "from shared.bus.fatal import supervise\n"
        "async def reads():\n"
        "    raise TailLost('placement-0 ends at 3: tail lost')\n"
        "async def group():\n"
        "    async with asyncio.TaskGroup() as tasks:\n"
        "        tasks.create_task(reads())\n"
        "async def main():\n"
        "    supervise(group(), 'background')\n"
        "    await asyncio.sleep(30)\n"
        "asyncio.run(main())"
    )
    assert done.returncode == 71
    assert done.stderr.startswith("background stops: TailLost: placement-0 ends at 3: tail lost")
