"""Checks that the pages on engines of a site share."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from services.executor.settings import ExecutorSettings
from shared.contracts.failures import ADVICE
from tests.pages import run_shell, shell
from tests.patience import PATIENCE_S


def assert_names_settings_and_reasons(page: str, engine: str) -> None:
    """The page names every setting of the engine, and every reason that an engine may give."""
    named = re.findall(rf"`BERTH_({engine.upper()}_\w+)`", page.partition("| variable |")[2])
    settings = {name for name in ExecutorSettings.model_fields if name.startswith(f"{engine}_")}
    assert {name.lower() for name in named} == settings
    reasons = set(re.findall(r"^\| `(engine_\w+)` \|", page, re.MULTILINE))
    assert reasons == {reason for reason in ADVICE if reason.startswith("engine_")}


def run_page(script: str, env: Mapping[str, str], folder: Path) -> str:
    """Run the commands of a page, and stop the stack that they started; return what they print."""
    try:
        return run_shell(script, env, folder, PATIENCE_S)
    finally:
        # A page that failed may have left no stack: its error is the one to report.
        subprocess.run(shell("berth down"), env=env, cwd=folder, timeout=PATIENCE_S, check=False)
