"""Runs the commands of `several-machines.md`, by the comment that says where they belong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from infra.drills.hosts import Host
from tests.pages import ROOT, environment, run_shell

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
    on = host.command if host is not None else list
    return run_shell(script, environment(home) | dict(variables), home.parent, on=on)
