"""The wheels and the zipapp: their content, their version, and that they work without Berth."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import berth_agent
import berth_reporter
from infra import packages
from tests.pages import blocks
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

ROOT = packages.ROOT
NO_COMMAND = importlib.util.find_spec("berth_agent.cli") is None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build everything: suffix and first word of the name -> path."""
    paths = packages.build(tmp_path_factory.mktemp("packages") / "dist")
    return {path.suffix + path.name[: len("berth_agent")]: path for path in paths}


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program without anything of this environment."""
    done = subprocess.run(
        command,
        env={"PATH": os.defpath, **env},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel, without an index, into a folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run(*command, "--target", folder, wheel)
    return folder


def modules(package: str) -> set[str]:
    """Return the files of a package's modules, from the folder above it."""
    folder = ROOT / package.removeprefix("berth_")
    return {str(path.relative_to(folder)) for path in (folder / package).rglob("*.py")}


@pytest.mark.parametrize("package", ["berth_agent", "berth_reporter"])
def test_a_wheel_holds_its_package_and_needs_no_other(built: dict[str, Path], package: str) -> None:
    wheel = built[".whl" + package[: len("berth_agent")]]
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
    assert {name for name in names if name.endswith(".py")} == modules(package)
    assert {name.split("/")[0].split("-")[0] for name in names} == {package}
    assert "Requires-Dist" not in text


def test_the_archive_holds_the_agent_alone(built: dict[str, Path]) -> None:
    path = built[".pyzberth-agent"]
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    sources = modules("berth_agent")
    assert names == {"__main__.py", *sources, *(f"{source}c" for source in sources)}
    assert os.access(path, os.X_OK)
    assert not path.with_suffix(".new").exists()


def test_the_archive_needs_the_standard_library_alone(built: dict[str, Path]) -> None:
    archive = built[".pyzberth-agent"]
    imports = ", ".join(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in sorted(modules("berth_agent"))
        if not name.endswith("__main__.py")
    )
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import {imports}\n"
    code += "print(berth_agent.__file__)"
    done = run(sys.executable, "-I", "-S", "-c", code)
    assert done.stdout.strip() == f"{archive}/berth_agent/__init__.pyc"


def test_modules_of_the_archive_are_compiled_and_another_python_reads_the_sources(
    built: dict[str, Path], tmp_path: Path
) -> None:
    archive, foreign = built[".pyzberth-agent"], tmp_path / "foreign.pyz"
    with zipfile.ZipFile(archive) as own, zipfile.ZipFile(foreign, "w") as changed:
        for name in own.namelist():
            content = own.read(name)
            # The first bytes of bytecode name the version that reads it.
            changed.writestr(name, b"\0\0\r\n" + content[4:] if name.endswith("c") else content)
    code = "import sys; sys.path.insert(0, sys.argv[1])\nimport berth_agent.step.main as step\n"
    code += "print(step.__spec__.loader.get_filename(step.__name__))"
    read = [run(sys.executable, "-I", "-c", code, path).stdout for path in (archive, foreign)]
    assert [Path(line.strip()).suffix for line in read] == [".pyc", ".py"]


@pytest.mark.skipif(NO_COMMAND, reason="this version of the agent has no command yet")
def test_the_command_starts_from_the_archive_and_from_the_wheel(
    built: dict[str, Path], tmp_path: Path
) -> None:
    from_archive = run(sys.executable, "-I", built[".pyzberth-agent"], "--help").stdout
    folder = install(built[".whlberth_agent"], tmp_path / "site")
    from_wheel = run(folder / "bin" / "berth-agent", "--help", PYTHONPATH=str(folder)).stdout
    assert "join" in from_archive
    assert "join" in from_wheel


def test_the_readme_of_the_reporter_works_as_it_stands(
    built: dict[str, Path], tmp_path: Path
) -> None:
    folder = install(built[".whlberth_repor"], tmp_path / "site")
    example = "\n".join(blocks((ROOT / "reporter" / "README.md").read_text(), "python"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.setblocking(False)
        receiver.bind(str(tmp_path / "telemetry"))
        run(
            *(sys.executable, "-c", example),
            PYTHONPATH=str(folder),
            BERTH_TELEMETRY=str(tmp_path / "telemetry"),
            BERTH_TELEMETRY_TOKEN="5ecret",
            RANK="1",
        )
        sent = [json.loads(receiver.recv(1024)) for _ in range(3)]
    assert [(fields["rank"], fields["step"]) for fields in sent] == [(1, 0), (1, 1), (1, 2)]
    assert all(fields["iteration_s"] > 0 for fields in sent)
    run(sys.executable, "-c", example, PYTHONPATH=str(folder))


def test_all_packages_have_one_version(built: dict[str, Path]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == berth_agent.VERSION == berth_reporter.VERSION
    wheels = [path.name.split("-")[1] for path in built.values() if path.suffix == ".whl"]
    assert wheels == [version, version]


def test_make_agent_builds_them() -> None:
    done = run("make", "-C", ROOT, "-n", "agent")
    assert "-m infra.packages" in done.stdout
