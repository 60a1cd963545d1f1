"""Export of a trained policy: the network, and a manifest with its origin."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from services.priority.core.learned.features import SCHEMA
from simulator.kernel.network import OPSET, Floats, network


def export(folder: Path, name: str, theta: Floats, about: dict[str, object]) -> Path:
    """Write `<name>.onnx` and `<name>.json` below `folder`; return the manifest's path."""
    model = network(theta)
    manifest = {
        "name": name,
        "sha256": hashlib.sha256(model).hexdigest(),
        "bytes": len(model),
        "opset": OPSET,
        "schema": {
            "name": SCHEMA.name,
            "sha256": SCHEMA.sha256,
            "columns": SCHEMA.columns,
            "context": SCHEMA.context,
        },
        **about,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(model)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(manifest, indent=1) + "\n")
    return path
