"""Runs pytest, and the few tests that failed once more, each after the other on a calm machine.

CI uses it: a test of real processes that fails once in some hundred runs would refuse every second
change. What failed first is printed either way, and is a defect of the test or of the product.
Final are more than MOST_FAILURES failures, any other end than failed tests, and a test that fails
again.

    python -m tests.retry -m "not parts" -n 4
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST_FAILURES = 4
"""The most failures of a run that are tried again."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(words: list[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    code = subprocess.call([sys.executable, "-m", "pytest", *words])
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= MOST_FAILURES:
        return code
    _list(f"{len(failed)} failed and are tried once more, alone:", failed)
    code = subprocess.call([sys.executable, "-m", "pytest", *failed])
    if code == pytest.ExitCode.OK:
        _list("Passed at the second try, and need a mend:", failed)
    return code


def _list(title: str, tests: list[str]) -> None:
    sys.stdout.write("\n  ".join((title, *tests)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
