"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

BERTH = Path(sys.executable).with_name("berth")
ASK = """
source <(berth completion bash)
COMP_WORDS=({words}) COMP_CWORD={last}
_berth_completion berth
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "expected"),
    [("berth ledg", ["ledgers"]), ("berth submit --work", ["--workers", "--workdir"])],
)
def test_bash_completes_commands_and_options(words: str, expected: list[str]) -> None:
    script = ASK.format(words=words, last=len(words.split()) - 1)
    env = {**os.environ, "PATH": f"{BERTH.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    assert "_BERTH_COMPLETE=" in CliRunner().invoke(app, ["completion", shell]).output


def test_another_shell_is_refused_with_those_that_there_are() -> None:
    ran = CliRunner().invoke(app, ["completion", "tcsh"])
    assert ran.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in ran.output
