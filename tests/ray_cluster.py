"""A real Ray for tests, which are skipped where Ray cannot be had."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.ray.cluster import RayCluster, missing, python, ray_cluster
from tests.patience import PATIENCE_S


@contextmanager
def temporary_cluster(token: str = "") -> Iterator[RayCluster]:
    """Run a cluster in a folder of its own."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="br", dir="/tmp") as folder,
        ray_cluster(Path(folder), python(), token, PATIENCE_S) as cluster,
    ):
        yield cluster
