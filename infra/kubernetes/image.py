"""The image of the pods on a real cluster of this machine: busybox alone."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

IMAGE = "localhost/berth-test:1"


def write_image(path: Path) -> None:
    """Write an image of busybox alone, as an archive that `ctr images import` reads."""
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("bin", "tmp", "dev", "proc", "sys", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(entry)
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = len(busybox), 0o755
        tar.addfile(entry, io.BytesIO(busybox))
        for name in ("sh", "sleep", "seq", "cat", "true", "env", "date"):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    files = {
        "layer.tar": layer.getvalue(),
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(
            [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
        ).encode(),
    }
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
