"""The admission policy on a real API server: what a tenant may not do to pods of Berth."""

from __future__ import annotations

import pytest

from services.executor.core.kubernetes.names import IDENTITY, RANK
from tests.kubernetes_cluster import IMAGE, TENANT, ApiError, KubernetesCluster
from tests.services.executor.engines.kubernetes.real_api import PODS, may_edit

pytestmark = [pytest.mark.process, pytest.mark.parts]


def test_no_other_user_makes_a_pod_that_counts_as_berths(cluster: KubernetesCluster) -> None:
    may_edit(cluster, "mallory")
    marks = {IDENTITY: "berth:here:gpu:1/5/0", RANK: "0"}
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
    cluster.request("POST", PODS, plain, TENANT)
    forged = {**plain, "metadata": {"name": "forged", "annotations": marks}}
    for method, path, body, kind in (
        ("POST", PODS, forged, "application/json"),
        (
            "PATCH",
            f"{PODS}/plain",
            {"metadata": {"annotations": marks}},
            "application/merge-patch+json",
        ),
    ):
        with pytest.raises(ApiError, match="by Berth's executor alone"):
            cluster.request(method, path, body, TENANT, kind)
