"""The registry without end answers as one does."""

from __future__ import annotations

import json
import threading
import urllib.request
from http.server import ThreadingHTTPServer

from benchmarks.parts.isolation.images import CONFIG, LAYER, LAYER_BYTES, MANIFEST, Registry, digest


def test_its_manifest_names_a_layer_that_never_ends() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/v2/huge"
    try:
        with urllib.request.urlopen(f"{url}/manifests/1") as answer:
            content = answer.read()
        manifest = json.loads(content)
        with urllib.request.urlopen(f"{url}/blobs/{manifest['config']['digest']}") as answer:
            assert digest(answer.read()) == digest(CONFIG)
        [layer] = manifest["layers"]
        with urllib.request.urlopen(f"{url}/blobs/{layer['digest']}") as answer:
            assert int(answer.headers["Content-Length"]) == layer["size"] == LAYER_BYTES
            assert answer.read(1 << 20) == bytes(1 << 20)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert content == MANIFEST and layer["digest"] == LAYER
