"""Jobs of a log in the Standard Workload Format as RLScheduler reads them, and its sequences."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.rounds.artifacts import artifact_folder

LOG = "lublin_256.swf"
PROCESSORS = 256
SEQUENCE_JOBS = 1024
UNKNOWN = -1.0
WORD = 2**32


class BatchJob(NamedTuple):
    """One job; times in s. Of a job without a requested time the run time is taken for it."""

    submit_s: float
    run_s: float
    request_s: float
    processors: int


def log_file() -> Path | None:
    """Return the log of the released code; None where it is not on this machine."""
    folder = artifact_folder("rlscheduler")
    return folder / LOG if folder is not None else None


def read_jobs(file: Path) -> list[BatchJob]:
    """Return the jobs of the file, in its order."""
    jobs = []
    for line in file.read_text().splitlines():
        if not line.strip() or line.startswith(";"):
            continue
        fields = [float(word) for word in line.split()]
        submit_s, run_s, allocated, requested, request_s = (fields[n] for n in (1, 3, 4, 7, 8))
        processors = int(allocated if requested == UNKNOWN else requested)
        request_s = run_s if request_s == UNKNOWN else request_s
        jobs.append(BatchJob(submit_s, run_s, request_s, processors))
    return jobs


def released_starts(jobs: int, sequences: int, seed: int = 1) -> list[int]:
    """Return the first jobs of the sequences that the released evaluation draws for a seed.

    Its environment seeds the Mersenne Twister of NumPy with the first eight bytes of the SHA-512 of
    the seed's digits, as words of 32 bits, the lowest first.
    """
    number = int.from_bytes(hashlib.sha512(str(seed).encode()).digest()[:8], "little")
    draws = np.random.RandomState()
    draws.seed([number % WORD, number // WORD])
    most = jobs - SEQUENCE_JOBS - 1
    return [int(draws.randint(SEQUENCE_JOBS, most)) for _ in range(sequences)]


def sequences(
    jobs: Sequence[BatchJob], starts: Sequence[int], length: int = SEQUENCE_JOBS
) -> list[list[BatchJob]]:
    return [list(jobs[start : start + length]) for start in starts]
