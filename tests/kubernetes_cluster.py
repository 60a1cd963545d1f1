"""A real Kubernetes for tests, which are skipped where a program is missing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.kubernetes.cluster import KubernetesCluster, control_plane, kubernetes_cluster, missing
from tests.patience import PATIENCE_S


@contextmanager
def temporary_control_plane() -> Iterator[KubernetesCluster]:
    """Run etcd and an API server alone in a folder of their own."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bk", dir="/tmp") as folder,
        control_plane(Path(folder), PATIENCE_S) as cluster,
    ):
        yield cluster


@contextmanager
def temporary_cluster() -> Iterator[KubernetesCluster]:
    """Run a cluster in a folder of its own."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bk", dir="/tmp") as folder,
        kubernetes_cluster(Path(folder), PATIENCE_S) as cluster,
    ):
        yield cluster
