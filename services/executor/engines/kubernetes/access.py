"""Access to the API of a cluster: of the pod that the executor runs in, or of a kubeconfig."""

from __future__ import annotations

import base64
import binascii
import logging
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import yaml

from shared.process.settings import BadSettings

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts the credentials of a pod's service account."""


Stamp = tuple[int, int, int]
"""Inode, size and time of the last change of a file, ns."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Access:
    """Address and credentials; the token of a file is read again, as it is replaced."""

    server: str
    tls: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    config: Path | None = None
    """The kubeconfig; none: the service account of the executor's own pod."""
    stamps: Mapping[Path, Stamp] = field(default_factory=dict)
    """Of the files that all this is from: kubeconfig, authority, certificate and key."""

    def bearer(self) -> str:
        """Return the present token, empty if there is none. Raises OSError."""
        if self.token_file is not None:
            return self.token_file.read_text().strip()
        return self.token


def access_of(config: Path | None) -> Access:
    """Return the access of a kubeconfig, of the executor's own pod if none is given."""
    return _of_pod() if config is None else _of_file(config)


def renewed(access: Access) -> Access:
    """Return the access anew where one of its files was replaced, such as a certificate.

    Where they cannot be used, as in the middle of a replacement, it stays as it is until the next
    call. Raises OSError.
    """
    if _stamps(access.stamps) == access.stamps:
        return access
    try:
        anew = access_of(access.config)
    except BadSettings as error:
        log.warning("credentials not renewed", extra={"reason": str(error)})
        return access
    log.info("credentials renewed", extra={"server": anew.server})
    return anew


def _stamps(files: Iterable[Path]) -> dict[Path, Stamp]:
    stamps = {}
    for file in files:
        seen = file.stat()
        stamps[file] = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
    return stamps


def _of_pod() -> Access:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise BadSettings("BERTH_KUBERNETES_CONFIG: needed outside of a pod of the cluster")
    authority = MOUNTED / "ca.crt"
    stamps = _stamps([authority])
    tls = ssl.create_default_context(cafile=str(authority))
    name = f"[{host}]" if ":" in host else host
    return Access(f"https://{name}:{port}", tls, token_file=MOUNTED / "token", stamps=stamps)


def _of_file(path: Path) -> Access:
    try:
        stamps = _stamps([path])
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config, "contexts", str(config["current-context"]))["context"]
        cluster = _named(config, "clusters", context["cluster"])["cluster"]
        user = _named(config, "users", context["user"])["user"]
        server = str(cluster["server"]).rstrip("/")
        stamps |= _stamps(path.parent / name for name in _files(cluster, user))
        tls = _tls(path.parent, cluster, user) if server.startswith("https:") else None
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise BadSettings(f"BERTH_KUBERNETES_CONFIG: {path}: {error}") from None
    if "exec" in user or "auth-provider" in user:
        raise BadSettings(f"BERTH_KUBERNETES_CONFIG: {path}: a token or a certificate is needed")
    token_file = path.parent / user["tokenFile"] if user.get("tokenFile") else None
    token = str(user.get("token") or "")
    return Access(server, tls, token, token_file, config=path, stamps=stamps)


def _files(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> list[str]:
    """Return the files that a kubeconfig names, beside that of a token."""
    certificates = (cluster.get("certificate-authority"), user.get("client-certificate"))
    return [str(name) for name in (*certificates, user.get("client-key")) if name]


def _named(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    for entry in config[kind]:
        if entry["name"] == name:
            return cast("dict[str, Any]", entry)
    raise ValueError(f"{kind}: no {name!r}")


def _tls(base: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the context of a cluster and user. Raises OSError and ValueError."""
    if cluster.get("insecure-skip-tls-verify"):
        raise ValueError("insecure-skip-tls-verify: the certificate is always verified")
    tls = ssl.create_default_context(
        cafile=_path(base, cluster.get("certificate-authority")), cadata=_authority(cluster)
    )
    if "client-certificate" in user:
        tls.load_cert_chain(base / user["client-certificate"], base / user["client-key"])
    elif "client-certificate-data" in user:
        with TemporaryDirectory(prefix="berth-kubernetes-") as folder:
            for name in ("certificate", "key"):
                file = Path(folder) / name
                file.touch(mode=0o600)
                file.write_bytes(_decoded(user[f"client-{name}-data"]))
            tls.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return tls


def _path(base: Path, name: str | None) -> str | None:
    return str(base / name) if name else None


def _authority(cluster: Mapping[str, Any]) -> str | None:
    data = cluster.get("certificate-authority-data")
    return _decoded(data).decode() if data else None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
