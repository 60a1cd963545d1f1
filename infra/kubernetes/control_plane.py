"""etcd and the API server of a Kubernetes on the loopback, without anything that runs pods.

The programs are those of `build`; what a test or a measurement adds (kubelets, controllers, a
scheduler) is started beside them.
"""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from infra.kubernetes import build
from infra.machine.process import START_S, free_ports

ADMIN, EXECUTOR = "admin-token", "executor-token"
ACCOUNT = "system:serviceaccount:berth:berth-executor"
USERS: Mapping[str, str] = {
    ADMIN: 'admin,u1,"system:masters"',
    EXECUTOR: f'{ACCOUNT},u2,"system:serviceaccounts"',
}
"""The rest of the line of a token: name, uid and groups of its user."""
MANIFESTS = Path(__file__).parent / "manifests"


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class ControlPlane:
    """The daemons by their names; each can be killed and started again.

    `users` are more tokens, each with the name, the uid and the groups of its user; `options` are
    more of the API server. A wait lasts `patience_s` at most.
    """

    def __init__(
        self,
        folder: Path,
        users: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        patience_s: float = START_S,
    ) -> None:
        self.folder = folder
        self.etcd_port, self.etcd_peer, self.port = free_ports(3)
        self.programs = build.cache_dir()
        self._users = {**USERS, **(users or {})}
        self._options = options
        self._patience_s = patience_s
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._tls = ssl.create_default_context()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, token: str) -> Path:
        """Return a kubeconfig of the user of a token."""
        path = self.folder / f"{token}.kubeconfig"
        cluster = {
            "server": self.server,
            "certificate-authority": str(self.folder / "certs" / "apiserver.crt"),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def prepare(self) -> None:
        """Write tokens and keys."""
        (self.folder / "certs").mkdir()
        tokens = "".join(f"{token},{user}\n" for token, user in self._users.items())
        (self.folder / "tokens.csv").write_text(tokens)
        key = self.folder / "sa.key"
        subprocess.run(
            ["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True
        )

    def start_control_plane(self) -> None:
        """Start etcd and the API server, where they do not run, on the data that is there."""
        client = f"http://127.0.0.1:{self.etcd_port}"
        if not self._runs("etcd"):
            self._start_etcd(client)
        self._start_api(client)
        self.eventually(self._answers, "the API server")

    def _runs(self, name: str) -> bool:
        return name in self._processes and self._processes[name].poll() is None

    def _start_etcd(self, client: str) -> None:
        peer = f"http://127.0.0.1:{self.etcd_peer}"
        self.spawn(
            "etcd",
            str(self.programs / "etcd"),
            f"--data-dir={self.folder}/etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=error",
        )

    def _start_api(self, client: str) -> None:
        key = self.folder / "sa.key"
        self.spawn(
            "apiserver",
            str(self.programs / "apiserver"),
            f"--etcd-servers={client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder}/certs",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.255.0.0/24",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds",
            "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP",
            *self._options,
        )

    def restart_api(self) -> None:
        """Kill the API server, whose watches break, and start it again."""
        self.signal("apiserver", signal.SIGKILL)
        self.start_control_plane()

    def compact(self) -> None:
        """Have etcd drop all versions but the present one."""
        url = f"http://127.0.0.1:{self.etcd_port}/v3/kv"
        key = base64.b64encode(b"/").decode()
        revision = self._etcd(f"{url}/range", {"key": key})["header"]["revision"]
        self._etcd(f"{url}/compaction", {"revision": revision, "physical": True})

    def _etcd(self, url: str, body: object) -> Any:
        request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.loads(response.read())

    def _answers(self) -> bool:
        certificate = self.folder / "certs" / "apiserver.crt"
        if not certificate.exists():
            return False
        with suppress(ApiError, OSError, ValueError):
            self._tls = ssl.create_default_context(cafile=str(certificate))
            return str(self.request("GET", "/readyz")) == "ok"
        return False

    def signal(self, name: str, number: int) -> None:
        """Signal a daemon by its name, a node's kubelet by that of the node."""
        process = self._processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(self._patience_s)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str = ADMIN,
        kind: str = "application/json",
    ) -> Any:
        """Return the answer of the API. Raises ApiError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=20) as response:
                text = response.read().decode()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text.startswith("{") else text

    def patch(self, path: str, change: object) -> Any:
        return self.request("PATCH", path, change, kind="application/merge-patch+json")

    def apply(self, text: str, token: str = ADMIN) -> None:
        """Apply manifests as `kubectl apply --server-side` does. Raises ApiError."""
        for manifest in filter(None, yaml.safe_load_all(text)):
            self.request(
                "PATCH",
                f"{path_of(manifest)}?fieldManager=test&force=true",
                manifest,
                token,
                "application/apply-patch+yaml",
            )

    def stop(self) -> None:
        """Kill all daemons."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self._processes.values():
            process.wait()

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def eventually(self, holds: Callable[[], bool], name: str) -> None:
        end_s = time.monotonic() + self._patience_s
        while not holds():
            if time.monotonic() > end_s:
                raise TimeoutError(f"{name} did not come up; see {self.folder}")
            time.sleep(0.1)


def path_of(manifest: Any) -> str:
    """Return the path of an object of the API."""
    group, kind = manifest["apiVersion"], manifest["kind"].lower()
    metadata = manifest["metadata"]
    base = f"/api/{group}" if "/" not in group else f"/apis/{group}"
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{base}{space}/{plural}/{metadata['name']}"
