"""Images that a hostile tenant names: one without a shell, and one of a registry without end."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from berth_agent.core.environment import DEFAULT_PATH
from infra.security import certificates

LAYER_BYTES = 1 << 40
CHUNK_BYTES = 1 << 20
TRUSTED = Path("/etc/containers/certs.d")
"""Where Podman looks for the CA of a registry, by its address."""
OCI = "application/vnd.oci.image"


@contextmanager
def without_a_shell() -> Iterator[str]:
    """Give the node an image of one file that is no program; return its name."""
    podman = shutil.which("podman", path=DEFAULT_PATH) or "podman"
    name = f"localhost/berth-isolation-{os.getpid()}:1"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.tar"
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo("data")
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
        imported = [podman, "import", "-q", str(path), name]
        subprocess.run(imported, check=True, capture_output=True)
    try:
        yield name
    finally:
        subprocess.run([podman, "rmi", name], check=False, capture_output=True)


@contextmanager
def huge() -> Iterator[str]:
    """Serve an image of a TiB from a registry of this machine that Podman trusts."""
    with tempfile.TemporaryDirectory() as folder:
        certificates.make(Path(folder), certificates.CertificateOptions())
        server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(folder) / "api.crt", Path(folder) / "api.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        address = f"127.0.0.1:{server.server_port}"
        trusted = TRUSTED / address
        trusted.mkdir(parents=True)
        shutil.copy(Path(folder) / "ca.crt", trusted / "ca.crt")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{address}/huge:1"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
            shutil.rmtree(trusted)


def described(content: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": f"{OCI}.{kind}", "digest": digest(content), "size": len(content)}


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


LAYER = digest(b"nothing has this digest")
CONFIG = json.dumps(
    {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [LAYER]}}
).encode()
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": described(CONFIG, "config.v1+json"),
        "layers": [{"mediaType": f"{OCI}.layer.v1.tar", "digest": LAYER, "size": LAYER_BYTES}],
    }
).encode()


class Registry(BaseHTTPRequestHandler):
    """Answers as a registry does; its one layer is longer than any disk."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self, *, body: bool) -> None:
        if self.path.endswith(LAYER):
            self._head(f"{OCI}.layer.v1.tar", LAYER_BYTES)
            with suppress(OSError):
                while body:
                    self.wfile.write(bytes(CHUNK_BYTES))
            return
        kind, content = f"{OCI}.config.v1+json", CONFIG
        if "/manifests/" in self.path:
            kind, content = f"{OCI}.manifest.v1+json", MANIFEST
        elif not self.path.endswith(digest(CONFIG)):
            kind, content = "application/json", b"{}"
        self._head(kind, len(content))
        if body:
            self.wfile.write(content)

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.end_headers()
