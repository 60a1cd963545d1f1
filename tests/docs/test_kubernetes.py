"""The page on Kubernetes is run as it stands: a stack of `berth up`, on a real Kubernetes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import ADMIN
from infra.kubernetes.image import IMAGE
from tests.docs.engine_pages import assert_names_settings_and_reasons, run_page
from tests.pages import ROOT, blocks
from tests.real_clusters import kubernetes_cluster

PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
PAGES_IMAGE = "registry/train:1"
MANIFESTS = "infra/kubernetes/manifests/"


@pytest.fixture
def cluster() -> Iterator[KubernetesCluster]:
    with kubernetes_cluster() as running:
        yield running


def test_the_page_names_every_setting_and_reason() -> None:
    assert_names_settings_and_reasons(PAGE, "kubernetes")


@pytest.mark.stack
@pytest.mark.parts
def test_the_page_does_what_it_says(cluster: KubernetesCluster) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{cluster.programs}:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.kubeconfig(ADMIN)),
        "BERTH_HOME": str(cluster.folder / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        # No network of pods is set up here.
        "BERTH_KUBERNETES_NETWORK": "host",
    }
    own = "restartPolicy: Never\n"
    text = re.sub(f"( +){own}", rf"\1{own}\1hostNetwork: true\n", "\n".join(blocks(PAGE)))
    text = text.replace(PAGES_IMAGE, IMAGE).replace(MANIFESTS, f"{ROOT}/{MANIFESTS}")
    output = run_page(text, environment, cluster.folder)
    assert re.search(r"rank 0 of 1 on GPUs GPU-\d,GPU-\d", output), output
    assert "g1" in output and "cancelled" in output
    assert {*re.findall(r"^index (\d) on GPUs GPU-\d$", output, re.MULTILINE)} == {"0", "1"}
    assert re.search(r"job [0-9a-f-]{36} of Berth: it was rejected: no pool capacity", output)
    assert re.search(r"berth-\w+-0 +1/1 +Running", output)
