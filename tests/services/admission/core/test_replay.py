from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = "from tests.services.admission.core.history import digest; print(digest())"


def digest_under(hash_seed: str) -> str:
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = digest_under("1"), digest_under("2")
    assert first == second
    assert len(first) == 64
