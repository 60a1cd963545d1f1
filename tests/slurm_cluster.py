"""A real Slurm for tests, which are skipped where a program is missing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.slurm.cluster import SlurmCluster, missing, slurm_cluster
from tests.patience import PATIENCE_S


@contextmanager
def temporary_cluster() -> Iterator[SlurmCluster]:
    """Run a cluster in a folder of its own; the test is skipped where a program is missing."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bs", dir="/tmp") as folder,
        slurm_cluster(Path(folder), PATIENCE_S) as cluster,
    ):
        yield cluster
