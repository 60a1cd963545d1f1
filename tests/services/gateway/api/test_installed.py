"""The wheel without its extra `server`, in an environment of its own, against a real gateway."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from infra.packages import build_wheel
from tests.services.gateway.stack import KEYS, Stack

pytestmark = [pytest.mark.parts, pytest.mark.process]
ROOT = Path(__file__).parents[4]
CODE = ("benchmarks", "cli", "infra", "services", "shared", "simulator", "training")
ALONE = ("agent", "client", "reporter")


def needed(package: str, known: set[str]) -> Iterator[Distribution]:
    """Yield the distributions that this one needs without its extras, of this environment."""
    for text in distribution(package).requires or ():
        requirement = Requirement(text)
        marker, name = requirement.marker, requirement.name.lower()
        if name not in known and (marker is None or marker.evaluate({"extra": ""})):
            known.add(name)
            yield distribution(name)
            yield from needed(name, known)


def link(package: Distribution, site: Path) -> None:
    """Link what the distribution has in its environment into another one."""
    for top in {file.parts[0] for file in package.files or () if file.parts[0] != ".."}:
        place = site / top
        if not place.exists():
            place.symlink_to(Path(str(package.locate_file(top))))


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of the wheel, with the dependencies that its own metadata name and no others."""
    folder = tmp_path_factory.mktemp("laptop")
    copy, venv = folder / "copy", folder / "venv"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in (*CODE, *ALONE):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    wheel = build_wheel(copy, folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    [site] = venv.glob("lib/*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    [own] = Distribution.discover(name="berth", path=[str(site)])
    known: set[str] = set()
    for text in own.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            known.add(requirement.name.lower())
            link(distribution(requirement.name), site)
            for package in needed(requirement.name, known):
                link(package, site)
    command = venv / "bin" / "berth"
    command.write_text(f"#!{venv}/bin/python\nfrom cli.main import app\n\napp()\n")
    command.chmod(0o755)
    return command


def run(berth: Path, *words: str, stack: Stack | None = None) -> tuple[int, str]:
    """Return exit code and output of the command, outside of the checkout."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(berth.parent)}
    if stack is not None:
        environ |= {"BERTH_URL": stack.url, "BERTH_KEY": KEYS["ada"]}
    done = subprocess.run(
        [berth, *words], env=environ, cwd=berth.parent, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_wheel_has_no_library_of_services(berth: Path) -> None:
    site = berth.parents[1] / "lib"
    names = {path.name for path in site.glob("*/site-packages/*")}
    assert {"httpx2", "typer", "berth_client"} <= names
    assert not names & {"fastapi", "aiokafka", "asyncpg", "numpy", "ortools", "uvicorn", "faust"}


def test_a_laptop_submits_lists_and_explains(berth: Path, stack: Stack) -> None:
    assert re.fullmatch(r"berth \d\S+\n", run(berth, "--version")[1])
    code, text = run(berth, "jobs", "--help")
    assert code == 0 and "--array" in text
    code, text = run(berth, "submit", "--gpus", "1", "--", "true", stack=stack)
    assert code == 0 and re.search(r"[0-9a-f-]{36}", text), text
    for words in (("jobs",), ("queue", "--json"), ("nodes",), ("pools", "list"), ("whoami",)):
        code, text = run(berth, *words, stack=stack)
        assert code == 0, text


@pytest.mark.parametrize("words", [("up",), ("demo",), ("verify",), ("simulate",)])
def test_a_command_of_the_suite_names_what_to_install(berth: Path, words: tuple[str, ...]) -> None:
    code, text = run(berth, *words)
    assert code == 1
    advice = r"berth: this command needs the whole suite, install berth\[server\]"
    assert re.fullmatch(rf"{advice}: \S+ is not installed\n", text)
