"""Full names of images: what `docker://NAME` means to the engine that pulls it."""

from __future__ import annotations

import re

DEFAULT_HOST = "docker.io"
LIBRARY = "library/"
"""Folder of images of the default registry that have none."""
DEFAULT_TAG = "latest"
FULL = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)+"
    r"(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})",
    re.ASCII,
)


def full_name(image: str) -> str:
    """Return the name with its registry, and its tag or digest. Raises ValueError.

    A short name means any image of the node's store that ends with it, and a hexadecimal one an
    image whose id begins with it: either may be of another tenant. A digest replaces a tag.
    """
    name, at, digest = image.partition("@")
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, path = DEFAULT_HOST, name
    if host == DEFAULT_HOST and "/" not in path:
        path = f"{LIBRARY}{path}"
    folders, slash, last = path.rpartition("/")
    last, colon, tag = last.partition(":")
    suffix = f"@{digest}" if at else f":{tag if colon else DEFAULT_TAG}"
    full = f"{host}/{folders}{slash}{last}{suffix}"
    if not FULL.fullmatch(full):
        raise ValueError(f"{image[:200]}: NAME, NAME:TAG or NAME@sha256:DIGEST is allowed")
    return full
