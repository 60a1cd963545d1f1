"""`python -m tests.fuzz --seconds N`: everything that fuzzes, for longer; one JSON document.

N seconds for each target of bytes; cases, examples and lives of the other three grow with N. Chance
is seeded by `--seed`. Exits with 1 after any failure; its input is in the document.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fuzz.tally import PATH_VARIABLE

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]


def bytes_fuzzed(seconds: int, seed: int) -> list[Json]:
    """Return a document per target; none without atheris."""
    if importlib.util.find_spec("atheris") is None:
        return []
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.bytes_fuzzer",
        "--seconds",
        str(seconds),
        "--seed",
        str(seed),
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def tests_fuzzed(seconds: int, seed: int) -> tuple[bool, dict[str, int]]:
    """Run the tests of this folder with larger numbers; return success and the tally."""
    with tempfile.TemporaryDirectory(prefix="berth-fuzz-") as name:
        counts = Path(name) / "tally"
        env = {
            **os.environ,
            PATH_VARIABLE: str(counts),
            "BERTH_FUZZ_CASES": str(8 * seconds),
            "BERTH_FUZZ_LIVES": str(12 * seconds),
            "BERTH_FUZZ_EXAMPLES": str(4 * seconds),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/fuzz",
            "--hypothesis-seed",
            str(seed),
            "--deselect",
            "tests/fuzz/test_bytes.py",
        ]
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=sys.stderr, check=False)
        return done.returncode == 0, json.loads(counts.read_text()) if counts.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="for each target of bytes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    targets = bytes_fuzzed(options.seconds, options.seed)
    ok, tried = tests_fuzzed(options.seconds, options.seed)
    ok &= not any(target["failed"] for target in targets)
    document = {
        "ok": ok,
        "seed": options.seed,
        "seconds": round(time.monotonic() - began),
        "bytes": {
            target["target"]: {key: target[key] for key in ("runs", "features")}
            for target in targets
        },
        "tried": dict(sorted(tried.items())),
        "total": sum(target["runs"] for target in targets) + sum(tried.values()),
        "found": [target for target in targets if target["failed"]],
    }
    print(json.dumps(document, indent=1))  # noqa: T201
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
