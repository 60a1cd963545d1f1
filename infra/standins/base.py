"""Stand-in of the Python base image: a small Debian from this machine's apt sources."""

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
"""Files with this machine's certificate authorities and package client settings, for builds."""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def import_base(tag: str, labels: Mapping[str, str]) -> None:
    """Build the root filesystem and import it into Docker with this tag and labels."""
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
        label_options = [
            option for name, text in labels.items() for option in ("-c", f'LABEL "{name}"="{text}"')
        ]
        output(
            ["docker", "import", "-c", f"ENV {PATH}", *label_options, str(folder / "root.tar"), tag]
        )


def sources() -> str:
    """Return Debian's part of this machine's apt sources, as lines of a sources.list."""
    fields = "$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    output_lines = output(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    rows = (line.split(" ", 2) for line in output_lines.splitlines())
    lines = sorted(
        {line for origin, suite, line in rows if origin == "Debian" and suite.startswith(SUITE)}
    )
    if not lines:
        raise DidNotStart(f"apt knows no Debian {SUITE} here (has `apt-get update` run?)")
    return "\n".join(lines) + "\n"


def output(command: list[str]) -> str:
    """Run a command and return its output. Raises DidNotStart with the end of its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise DidNotStart(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        output_lines = (error.stdout + error.stderr).strip().splitlines()[-15:]
        raise DidNotStart(f"{command[0]}: " + "\n".join(output_lines)) from None
    return done.stdout
