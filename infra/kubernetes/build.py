"""Builds the programs of a Kubernetes from Go modules into the user's cache, once.

No binary of a release is fetched: `go/` names the modules and their hashes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.machine import maven
from infra.machine.process import DidNotStart

VERSION = "1.36.3"
SOURCES = Path(__file__).parent / "go"
PROGRAMS = ("apiserver", "controllers", "kubelet", "deviceplugin", "kubectl")
"""Packages of the module of Kubernetes; `etcd` is a module of its own."""
ALL = ("etcd", *PROGRAMS)
SCHEDULER, KWOK = "scheduler", "kwok"
BESIDE = (SCHEDULER, KWOK)
"""For the comparison with the scheduler of Kubernetes alone."""
OWN_MODULES = frozenset({"etcd", KWOK})
VARIABLES = {
    "k8s.io/component-base/version.gitVersion": f"v{VERSION}",
    "k8s.io/component-base/version.gitMajor": "1",
    "k8s.io/component-base/version.gitMinor": VERSION.split(".")[1],
    "k8s.io/client-go/pkg/version.gitVersion": f"v{VERSION}",
}
GO_FOLDERS = ("/usr/local/go/bin", "/usr/lib/go/bin")
"""Folders of a Go that is not on PATH."""


def cache_dir() -> Path:
    """Return the cache directory of the programs."""
    return maven.cache_dir(f"kubernetes-{VERSION}")


def missing(names: Sequence[str] = ALL) -> str:
    """Return why the programs cannot be run, empty if they can."""
    absent = [name for name in names if not (cache_dir() / name).is_file()]
    return f"{absent[0]} is not built: make kubernetes (11 minutes of CPU time)" if absent else ""


def build(names: Sequence[str] = ALL) -> Path:
    """Build what is not built yet, and return its directory. Raises DidNotStart."""
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (cache / name).is_file():
            print(f"Building {name} {VERSION}.", file=sys.stderr)  # noqa: T201
            _build(name, cache)
    return cache


def _build(name: str, cache: Path) -> None:
    is_alone = name in OWN_MODULES
    folder = SOURCES / name if is_alone else SOURCES
    flags = " ".join(["-s", "-w", *(f"-X {key}={text}" for key, text in VARIABLES.items())])
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        program = Path(scratch) / name
        command = [_go(), "build", "-p", "2", "-trimpath", "-ldflags", flags, "-o", str(program)]
        package = "." if is_alone else f"./{name}"
        try:
            subprocess.run([*command, package], cwd=folder, env=environment, check=True)
        except subprocess.CalledProcessError as error:
            raise DidNotStart(f"go build {name}: exit code {error.returncode}") from None
        program.rename(cache / name)


def _go() -> str:
    for folder in ("", *GO_FOLDERS):
        if program := shutil.which("go", path=folder or None):
            return program
    raise DidNotStart("Go 1.26 is not installed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the programs; return 1 with a message if that cannot be done."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    try:
        build()
    except DidNotStart as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
