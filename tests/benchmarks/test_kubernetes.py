"""The comparison with kube-scheduler runs as a whole on a small cluster; no speed decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.kubernetes import KubernetesOptions, run
from benchmarks.parts.kubernetes.figures import BERTH, DEFAULT
from infra.kubernetes import build

ABSENT = build.missing((*build.ALL, *build.BESIDE))


@pytest.mark.stack
@pytest.mark.parts
@pytest.mark.skipif(bool(ABSENT), reason=ABSENT or "it is built")
async def test_berth_starts_no_half_of_a_gang_where_kube_scheduler_does(tmp_path: Path) -> None:
    options = KubernetesOptions(
        nodes=6, gangs=3, workers=2, only=f"{DEFAULT},{BERTH}", quiet_s=20, out=str(tmp_path)
    )
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    systems = result["systems"]
    assert [systems[name]["bound"] for name in (DEFAULT, BERTH)] == [6, 6]
    default, berth = (systems[name]["contended"] for name in (DEFAULT, BERTH))
    assert (default["half_started"], default["gpus_stranded"]) == (2, 48)
    assert (berth["whole"], berth["half_started"], berth["gpus_stranded"]) == (1, 0, 0)
    assert all(systems[name]["requests_per_pod"] > 0 for name in systems)
    assert json.loads((tmp_path / "kubernetes.json").read_text()) == result
    assert "| `gpus_stranded` | 48 | 0 |" in (tmp_path / "kubernetes.md").read_text()


async def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        await run(KubernetesOptions(only="yarn"), lambda line: None)
