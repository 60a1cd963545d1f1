"""Real clusters for tests, each in a folder of its own; skipped where a program is missing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.kubernetes import cluster as kubernetes
from infra.ray import cluster as ray
from infra.slurm import cluster as slurm
from tests.patience import PATIENCE_S


@contextmanager
def slurm_cluster(*, has_hooks: bool = False) -> Iterator[slurm.SlurmCluster]:
    with (
        folder_or_skip(slurm.missing()) as folder,
        slurm.slurm_cluster(folder, PATIENCE_S, has_hooks=has_hooks) as running,
    ):
        yield running


@contextmanager
def ray_cluster(token: str = "") -> Iterator[ray.RayCluster]:
    with (
        folder_or_skip(ray.missing()) as folder,
        ray.ray_cluster(folder, ray.python(), token, PATIENCE_S) as running,
    ):
        yield running


@contextmanager
def kubernetes_cluster() -> Iterator[kubernetes.KubernetesCluster]:
    with (
        folder_or_skip(kubernetes.missing()) as folder,
        kubernetes.kubernetes_cluster(folder, PATIENCE_S) as running,
    ):
        yield running


@contextmanager
def kubernetes_control_plane() -> Iterator[kubernetes.KubernetesCluster]:
    """Run etcd and an API server alone."""
    with (
        folder_or_skip(kubernetes.missing()) as folder,
        kubernetes.control_plane(folder, PATIENCE_S) as running,
    ):
        yield running


@contextmanager
def folder_or_skip(reason: str) -> Iterator[Path]:
    """Yield a folder with a path that is short enough for sockets, unless there is a reason."""
    if reason:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="bc", dir="/tmp") as folder:
        yield Path(folder)
