"""Builds what is installed without Berth: the agent of nodes and the reporter of trainings.

`python -m infra.packages [--out FOLDER]` makes two wheels and `berth-agent.pyz`, which holds the
agent alone and needs Python 3.11 or newer and nothing else.
"""

from __future__ import annotations

import argparse
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = "berth-agent.pyz"
INTERPRETER = "/usr/bin/env python3"
ENTRY = re.compile(r"([\w.]+):(\w+)")
BUILD_S = 300


def build(out: Path) -> list[Path]:
    """Build all three into a folder and return their paths. Raises CalledProcessError, OSError."""
    out.mkdir(parents=True, exist_ok=True)
    wheels = [build_wheel(ROOT / name, out) for name in ("agent", "reporter")]
    return [*wheels, build_archive(ROOT / "agent", out / ARCHIVE)]


def build_wheel(project: Path, out: Path) -> Path:
    """Build the wheel of a project into a folder and return its path.

    It is built from a copy: setuptools leaves its own files beside the sources.
    """
    with tempfile.TemporaryDirectory(prefix="berth-wheel-") as folder:
        copy, wheels = Path(folder) / project.name, Path(folder) / "wheels"
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns("__pycache__"))
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "wheel"]
        subprocess.run([*pip, *options, "--wheel-dir", wheels, copy], check=True, timeout=BUILD_S)
        [wheel] = wheels.iterdir()
        return Path(shutil.copy(wheel, out))


def build_archive(project: Path, target: Path) -> Path:
    """Pack the agent's package into one file that Python executes.

    The file is replaced by rename, so that an agent that runs from it keeps the old one.
    """
    with tempfile.TemporaryDirectory(prefix="berth-archive-") as folder:
        package = Path(folder) / "berth_agent"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(project / "berth_agent", package, ignore=ignored)
        _compile(package)
        (Path(folder) / "__main__.py").write_text(_main(project))
        fresh = target.with_suffix(".new")
        zipapp.create_archive(folder, fresh, INTERPRETER, compressed=True)
        return fresh.replace(target)


def _compile(package: Path) -> None:
    """Put the bytecode of this Python beside the sources, which another version of it reads.

    From an archive nothing is cached: each step would compile its modules, which takes it 2 MiB.
    """
    for source in package.rglob("*.py"):
        shown = str(source.relative_to(package.parent))
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compiled = str(source.with_suffix(".pyc"))
        py_compile.compile(str(source), compiled, shown, doraise=True, invalidation_mode=mode)


def _main(project: Path) -> str:
    """Return the program of the archive: that of the wheel's command."""
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    entry = settings["project"]["scripts"]["berth-agent"]
    match = ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"entry of berth-agent: {entry!r}; module:function is allowed")
    module, function = match.groups()
    return f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"


def main() -> None:
    """Build, and print the paths."""
    parser = argparse.ArgumentParser(prog="python -m infra.packages", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist")
    for path in build(parser.parse_args().out):
        print(path)  # noqa: T201


if __name__ == "__main__":
    main()
