"""The page on Kubernetes is run as it stands: a stack of `berth up`, on a real Kubernetes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.executor.settings import ExecutorSettings
from shared.contracts.failures import ADVICE
from tests.kubernetes_cluster import ADMIN, IMAGE, KubernetesCluster, kubernetes_cluster, missing
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
PAGES_IMAGE = "registry/train:1"
MANIFESTS = "infra/kubernetes/manifests/"


def script() -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture
def cluster() -> Iterator[KubernetesCluster]:
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bk", dir="/tmp") as folder,
        kubernetes_cluster(Path(folder)) as running,
    ):
        yield running


def test_the_page_names_every_setting() -> None:
    settings = {name for name in ExecutorSettings.model_fields if name.startswith("kubernetes_")}
    named = set(re.findall(r"`BERTH_(KUBERNETES_\w+)`", PAGE.partition("| variable |")[2]))
    assert {name.lower() for name in named} == settings


def test_the_page_has_every_reason_of_an_engine() -> None:
    named = set(re.findall(r"^\| `(engine_\w+)` \|", PAGE, re.MULTILINE))
    assert named == {reason for reason in ADVICE if reason.startswith("engine_")}


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
    text = re.sub(f"( +){own}", rf"\1{own}\1hostNetwork: true\n", script())
    text = text.replace(PAGES_IMAGE, IMAGE).replace(MANIFESTS, f"{ROOT}/{MANIFESTS}")
    try:
        done = run(["bash", "-eu", "-o", "pipefail", "-c", text], environment, cluster.folder)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        run(["berth", "down"], environment, cluster.folder)
    assert re.search(r"rank 0 of 1 on GPUs GPU-\d,GPU-\d", done.stdout), done.stdout
    assert "g1" in done.stdout and "cancelled" in done.stdout
    assert {*re.findall(r"^index (\d) on GPUs GPU-\d$", done.stdout, re.MULTILINE)} == {"0", "1"}
    assert re.search(r"job [0-9a-f-]{36} of Berth: it was rejected: no pool capacity", done.stdout)
    assert re.search(r"berth-\w+-0 +1/1 +Running", done.stdout)


def run(
    command: list[str], environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
