"""The files of an exported policy."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from simulator.kernel.network import theta_of
from simulator.kernel.weights import untrained
from training.export import export


def test_a_manifest_has_the_digest_of_its_network_and_the_network_its_weights(
    tmp_path: Path,
) -> None:
    theta = untrained(4, 1)
    manifest = json.loads(export(tmp_path, "net", theta, {"seed": 1}).read_text())
    model = (tmp_path / "net.onnx").read_bytes()
    assert manifest["sha256"] == hashlib.sha256(model).hexdigest()
    assert (manifest["bytes"], manifest["seed"]) == (len(model), 1)
    np.testing.assert_allclose(theta_of(model), theta, rtol=0, atol=1e-6)
