"""The stand-in of the Python base image: a small Debian from where this machine's apt asks."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from infra.machine.process import DidNotStart

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python-is-python3", "python3", "python3-venv")
KEPT = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
"""Whom this machine trusts and how it asks for packages, or a build in a container could not."""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def import_base(tag: str, labels: Mapping[str, str]) -> None:
    """Make the root filesystem and give it to Docker under this tag, with these labels."""
    if not shutil.which("mmdebstrap"):
        raise DidNotStart("mmdebstrap is not installed: a stand-in is built from Debian's packages")
    with tempfile.TemporaryDirectory(prefix="berth-base-") as name:
        folder = Path(name)
        (folder / "sources.list").write_text(sources())
        hooks = [
            f"--customize-hook=copy-in {path} {Path(path).parent}"
            for path in KEPT
            if Path(path).exists()
        ]
        output(
            [
                "mmdebstrap",
                "-q",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                *hooks,
                SUITE,
                str(folder / "root.tar"),
                str(folder / "sources.list"),
            ]
        )
        said = [
            word for name, text in labels.items() for word in ("-c", f'LABEL "{name}"="{text}"')
        ]
        output(["docker", "import", "-c", f"ENV {PATH}", *said, str(folder / "root.tar"), tag])


def sources() -> str:
    """Debian's part of this machine's apt sources, as lines of a sources.list."""
    wanted = "$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    told = output(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"])
    rows = (line.split(" ", 2) for line in told.splitlines())
    lines = sorted(
        {line for origin, suite, line in rows if origin == "Debian" and suite.startswith(SUITE)}
    )
    if not lines:
        raise DidNotStart(f"apt knows no Debian {SUITE} here (has `apt-get update` run?)")
    return "\n".join(lines) + "\n"


def output(command: list[str]) -> str:
    """What it prints; its last words are the error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise DidNotStart(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        told = (error.stdout + error.stderr).strip().splitlines()[-15:]
        raise DidNotStart(f"{command[0]}: " + "\n".join(told)) from None
    return done.stdout
