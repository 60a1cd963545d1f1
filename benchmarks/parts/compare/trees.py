"""The tree of another commit beside this one, and one run of a benchmark in either."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sys
import tarfile
import tomllib
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from benchmarks.parts.command import Json

ROOT = Path(__file__).parents[3]
SOURCES = ("", "agent", "client", "reporter")
"""Folders of a tree whose packages Python imports."""


async def unpack_commit(commit: str) -> Path:
    """Return the folder of a commit's tree; it is made once, so that its caches stay.

    Raises ValueError for what git does not know as a commit.
    """
    name = f"{commit}^{{commit}}"
    known = await asyncio.create_subprocess_exec(
        *("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--end-of-options", name),
        stdout=PIPE,
        stderr=DEVNULL,
    )
    output, _ = await known.communicate()
    if known.returncode:
        raise ValueError(f"base: {commit!r}, must be a commit of this repository")
    folder = ROOT / "build" / "compare" / output.decode().strip()
    if not folder.is_dir():
        await unpack(folder.name, folder)
    link_traces(folder.parent)
    return folder


def link_traces(trees: Path) -> None:
    """Let the trees find the shared traces beside this one: both run the same workload."""
    traces, link = ROOT.parent / "shared", trees / "shared"
    if traces.is_dir() and not link.is_symlink():
        link.symlink_to(traces)


async def unpack(commit: str, folder: Path) -> None:
    """Write the files of the commit; the folder has its name once it is complete."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with TemporaryFile() as archive:
        git = await asyncio.create_subprocess_exec(
            *("git", "-C", str(ROOT), "archive", commit), stdout=archive
        )
        if await git.wait():
            raise ValueError(f"base: git archive {commit} failed")
        archive.seek(0)
        with tarfile.open(fileobj=archive) as files:
            files.extractall(part, filter="data")
    part.rename(folder)


async def run_bench(tree: Path, bench: str, options: Sequence[str]) -> Json:
    """Return what `berth bench` of that tree prints, and as `process` the CPU s of its processes.

    Raises ValueError where it fails.
    """
    before_s = children_cpu_s()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program_of(tree), "bench", bench, *options, "--json"),
        cwd=tree,
        env=environment_of(tree),
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if process.returncode:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise ValueError(f"{bench} in {tree}: exit code {process.returncode}: {last}")
    return {**json.loads(output), "process": {"cpu_s": children_cpu_s() - before_s}}


def program_of(tree: Path) -> str:
    """Return a program that runs the `berth` of that tree; it fails if that would be another's."""
    scripts = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["scripts"]
    module, name = scripts["berth"].split(":")
    return (
        f"import sys, {module} as berth\n"
        f"if not berth.__file__.startswith({f'{tree}/'!r}):\n"
        f"    sys.exit(f'{module}: {{berth.__file__}}, must lie in {tree}')\n"
        f"berth.{name}()\n"
    )


def environment_of(tree: Path) -> dict[str, str]:
    """Return an environment in which the tree goes before what is installed."""
    path = os.pathsep.join(str(tree / source) for source in SOURCES)
    return {**os.environ, "PYTHONPATH": path}


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
