"""Runs the commands of `several-machines.md`, by the comment that says where they belong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from infra.drills.hosts import Host
from tests.pages import PAGE_S, ROOT, environment, shell

PAGE = ROOT / "docs" / "operations" / "several-machines.md"
BLOCK = re.compile(r"(?:<!-- ([a-z ]+) -->\n)?^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_blocks(
    place: str, home: Path, variables: Mapping[str, str], host: Host | None = None
) -> str:
    """Run the page's commands of one place, in order; return what they print.

    They run beside the data folder `home`, on `host` or, without one, on this machine.
    """
    script = "\n".join(text for mark, text in BLOCK.findall(PAGE.read_text()) if mark == place)
    assert script
    command = shell(script)
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
