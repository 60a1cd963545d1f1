"""`python -m infra.security.supply_chain audit|sbom`: audit the locked packages, list them.

An audit without answers of the advisory service fails with exit code 2.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra.machine.process import DidNotStart

LOCKS = tuple(Path(name) for name in ("requirements.lock", "requirements-dev.lock"))
ADVISORIES = "https://api.osv.dev/v1/query"
SBOM = Path("build/sbom.cdx.json")
PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^ \\;]+)")
MARKER = re.compile(r" ;.*?(?= \\$|$)", re.MULTILINE)
Package = tuple[str, str]
CLEAN, UNSAFE, NOT_AUDITED = 0, 1, 2
LAST_LINES = 3


class NotAudited(Exception):
    """The advisory service did not answer for every package."""


def locked(lock: Path) -> set[Package]:
    """Return (normalized name, version) of each locked package."""
    return {_package(entry) for entry in _entries(lock.read_text())}


def findings(lock: Path, advisories: str = ADVISORIES) -> list[str]:
    """Return a line per known vulnerability of a locked package. Raises NotAudited."""
    responses = [
        package for text in rounds(lock.read_text()) for package in _query(text, advisories)
    ]
    answered = {
        (_normal(package["name"]), package["version"])
        for package in responses
        if "vulns" in package
    }
    if missing := sorted(locked(lock) - answered):
        raise NotAudited(f"no answer for {', '.join('=='.join(package) for package in missing)}")
    return [
        f"{package['name']} {package['version']}: {flaw['id']}, "
        f"fixed in {flaw['fix_versions'] or 'none'}"
        for package in responses
        for flaw in package["vulns"]
    ]


def rounds(text: str) -> list[str]:
    """Split the lock into texts without environment markers that name each package once."""
    documents: list[dict[str, str]] = []
    for entry in _entries(MARKER.sub("", text)):
        name, _ = _package(entry)
        entries = next((entries for entries in documents if name not in entries), None)
        if entries is None:
            documents.append(entries := {})
        entries[name] = entry
    return ["\n".join(entries.values()) + "\n" for entries in documents]


def _query(text: str, advisories: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        lock, report = Path(folder) / "lock.txt", Path(folder) / "report.json"
        lock.write_text(text)
        done = _tool(
            "pip-audit",
            "--strict",
            "--disable-pip",
            "--require-hashes",
            "--progress-spinner",
            "off",
            "--vulnerability-service",
            "osv",
            "--osv-url",
            advisories,
            "--requirement",
            str(lock),
            "--format",
            "json",
            "--output",
            str(report),
        )
        if not report.exists():
            raise NotAudited(_end(done.stderr))
        packages: list[dict[str, Any]] = json.loads(report.read_text())["dependencies"]
        return packages


def audit(locks: Sequence[Path], advisories: str = ADVISORIES) -> int:
    """Print the findings; return the exit code."""
    worst = CLEAN
    for lock in locks:
        try:
            vulnerabilities = findings(lock, advisories)
        except NotAudited as error:
            _say(f"NOT AUDITED {lock}: {error}")
            worst = NOT_AUDITED
            continue
        for line in vulnerabilities:
            _say(f"UNSAFE {lock}: {line}")
        counts = f"{len(locked(lock))} packages, {len(vulnerabilities)} known vulnerabilities"
        _say(f"{lock}: {counts}")
        worst = max(worst, UNSAFE if vulnerabilities else CLEAN)
    return worst


def sbom(lock: Path, out: Path) -> None:
    """Write a reproducible CycloneDX 1.6 document of the locked packages."""
    out.parent.mkdir(parents=True, exist_ok=True)
    done = _tool(
        "cyclonedx-py",
        "requirements",
        str(lock),
        "--spec-version",
        "1.6",
        "--output-reproducible",
        "--output-format",
        "JSON",
        "--output-file",
        str(out),
    )
    if done.returncode:
        raise DidNotStart(f"cyclonedx-py: {_end(done.stderr)}")


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise DidNotStart(f"{name} is not installed: make dev")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def _end(text: str) -> str:
    return " ".join(text.strip().splitlines()[-LAST_LINES:])[-500:] or "no output"


def _entries(text: str) -> list[str]:
    """Return the requirements of the lock with their hashes."""
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    return re.split(r"\n(?=\S)", "\n".join(lines))


def _package(entry: str) -> Package:
    match = PINNED.match(entry)
    if match is None:
        raise NotAudited(f"not pinned: {entry.splitlines()[0][:80]}")
    return _normal(match[1]), match[2]


def _normal(name: str) -> str:
    """Normalize a name as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m infra.security.supply_chain", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    audit_parser = commands.add_parser("audit", help="query the advisory service for every package")
    audit_parser.add_argument("--advisories", default=ADVISORIES, help="an OSV service")
    audit_parser.add_argument("locks", nargs="*", type=Path, default=list(LOCKS))
    writes = commands.add_parser("sbom", help="write the bill of materials")
    writes.add_argument("--lock", type=Path, default=LOCKS[0])
    writes.add_argument("--out", type=Path, default=SBOM)
    options = parser.parse_args()
    try:
        if options.command == "audit":
            raise SystemExit(audit(options.locks, options.advisories))
        sbom(options.lock, options.out)
        _say(f"{options.out}: {len(locked(options.lock))} packages")
    except DidNotStart as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
