"""Runs the commands of `several-machines.md`, by the comment that says where they belong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from infra.drills.hosts import Host

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "several-machines.md"
BLOCK = re.compile(r"(?:<!-- ([a-z ]+) -->\n)?^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGE_S = 600


def run_blocks(
    place: str, home: Path, variables: Mapping[str, str], host: Host | None = None
) -> str:
    """Run the page's commands of one place, in order; return what they print.

    They run beside the data folder `home`, on `host` or, without one, on this machine.
    """
    script = "\n".join(text for mark, text in BLOCK.findall(PAGE.read_text()) if mark == place)
    assert script
    command = ["bash", "-eu", "-o", "pipefail", "-c", script]
    done = subprocess.run(
        host.command(command) if host is not None else command,
        env=environment(home) | dict(variables),
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=PAGE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """Return the environment of an operator's shell in the virtual environment."""
    names = ("HOME", "LANG", "TMPDIR", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "BERTH_HOME": str(home)}
