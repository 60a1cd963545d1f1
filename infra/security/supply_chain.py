"""`python -m infra.security.supply_chain audit|sbom`: which packages are locked and known unsafe.

An audit that could not ask is no audit: it says so and ends with 2, never with 0.
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
    """Names, as PEP 503 compares them, and versions; some have one for each Python."""
    return {_package(entry) for entry in _entries(lock.read_text())}


def findings(lock: Path, advisories: str = ADVISORIES) -> list[str]:
    """One line per known weakness of a locked package; raises NotAudited."""
    told = [each for text in rounds(lock.read_text()) for each in _asked(text, advisories)]
    answered = {(_normal(each["name"]), each["version"]) for each in told if "vulns" in each}
    if missing := sorted(locked(lock) - answered):
        raise NotAudited(f"no answer for {', '.join('=='.join(each) for each in missing)}")
    return [
        f"{each['name']} {each['version']}: {bad['id']}, fixed in {bad['fix_versions'] or 'none'}"
        for each in told
        for bad in each["vulns"]
    ]


def rounds(text: str) -> list[str]:
    """The lock for every Python at once: without its conditions, and so that no text names a
    package twice."""
    made: list[dict[str, str]] = []
    for entry in _entries(MARKER.sub("", text)):
        name, _ = _package(entry)
        free = next((each for each in made if name not in each), None)
        if free is None:
            made.append(free := {})
        free[name] = entry
    return ["\n".join(each.values()) + "\n" for each in made]


def _asked(text: str, advisories: str) -> list[dict[str, Any]]:
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
        found: list[dict[str, Any]] = json.loads(report.read_text())["dependencies"]
        return found


def audit(locks: Sequence[Path], advisories: str = ADVISORIES) -> int:
    """Says what it found; what is returned is the process's exit code."""
    worst = CLEAN
    for lock in locks:
        try:
            found = findings(lock, advisories)
        except NotAudited as error:
            _say(f"NOT AUDITED {lock}: {error}")
            worst = NOT_AUDITED
            continue
        for line in found:
            _say(f"UNSAFE {lock}: {line}")
        _say(f"{lock}: {len(locked(lock))} packages asked for, {len(found)} known weaknesses")
        worst = max(worst, UNSAFE if found else CLEAN)
    return worst


def sbom(lock: Path, out: Path) -> None:
    """CycloneDX 1.6 of every locked package, the same bytes for the same lock."""
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
    return " ".join(text.strip().splitlines()[-LAST_LINES:])[-500:] or "it said nothing"


def _entries(text: str) -> list[str]:
    """A requirement with its hashes each."""
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    return re.split(r"\n(?=\S)", "\n".join(lines))


def _package(entry: str) -> Package:
    found = PINNED.match(entry)
    if found is None:
        raise NotAudited(f"not pinned: {entry.splitlines()[0][:80]}")
    return _normal(found[1]), found[2]


def _normal(name: str) -> str:
    """As PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m infra.security.supply_chain", description=__doc__
    )
    words = parser.add_subparsers(dest="word", required=True)
    asks = words.add_parser("audit", help="ask the advisory service for every locked package")
    asks.add_argument("--advisories", default=ADVISORIES, help="an OSV service")
    asks.add_argument("locks", nargs="*", type=Path, default=list(LOCKS))
    writes = words.add_parser("sbom", help="write the bill of materials")
    writes.add_argument("--lock", type=Path, default=LOCKS[0])
    writes.add_argument("--out", type=Path, default=SBOM)
    options = parser.parse_args()
    try:
        if options.word == "audit":
            raise SystemExit(audit(options.locks, options.advisories))
        sbom(options.lock, options.out)
        _say(f"{options.out}: {len(locked(options.lock))} packages")
    except DidNotStart as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
