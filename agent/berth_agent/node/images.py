"""Images of containers, in the store of the node's engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth_agent.core.environment import DEFAULT_PATH
from berth_agent.core.image_names import full_name
from berth_agent.node.config import Config
from berth_agent.step.checks import StartRefused

CLIENT = {"PATH": DEFAULT_PATH}
"""Variables of the engine: it runs as root, and gets none of a job."""
CALL_S = 30.0
MISSING = re.compile(
    "manifest unknown|not found|denied|unauthorized|image not known|invalid reference", re.I
)
SHOWN_CHARS = 300
ORDERS = "run.oci."
"""Begins annotations that the container runtime obeys, such as to load another seccomp filter."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Podman on this node."""

    program: str
    driver: str
    """How it stores layers, such as `overlay`."""
    store: str
    """Folder of the node's images."""


class Images:
    """Used by threads, one for each launch: to pull an image takes minutes."""

    def __init__(self, config: Config, engine: Engine | None) -> None:
        self._config = config
        self._program = engine.program if engine else ""

    def pull(self, image: str) -> str:
        """Return the id of the image, which is pulled unless it is there. Raises StartRefused."""
        if not self._program or not os.path.exists(self._program):
            detail = f"image: {image[:200]}; this node has no engine for containers"
            raise StartRefused("no_container_runtime", detail, False)
        try:
            name = full_name(image)
        except ValueError as error:
            raise StartRefused("image_not_found", f"image: {error}", True) from None
        try:
            present = self._inspect(name)
            if present is None:
                # A name of another transport, such as dir:, could read files of the node.
                words = ("pull", "-q", f"docker://{name}")
                pulled = call(self._program, self._config.image_pull_s, *words)
                if pulled.returncode != 0:
                    raise _refused(name, pulled.stderr)
                present = self._inspect(name)
        except subprocess.TimeoutExpired as error:
            detail = f"{name}: no answer within {error.timeout:g} s"
            raise StartRefused("image_unreachable", detail, False) from None
        if present is None:
            raise StartRefused("image_unreachable", f"{name}: pulled, and removed again", False)
        _check_annotations(name, present)
        return str(present["Id"])

    def _inspect(self, name: str) -> dict[str, Any] | None:
        """Return an image of the node's store, None if it has none of exactly this name.

        An engine may take one whose name ends with this one, of any registry.
        """
        done = call(self._program, CALL_S, "image", "inspect", "--", name)
        try:
            images = json.loads(done.stdout)
        except ValueError:
            return None
        for image in images:
            if name in (*(image.get("RepoTags") or ()), *(image.get("RepoDigests") or ())):
                return dict(image)
        return None


def _check_annotations(name: str, image: Mapping[str, Any]) -> None:
    """Raise StartRefused for an image that gives orders to the runtime, which is root."""
    for annotation in image.get("Annotations") or ():
        if annotation.startswith(ORDERS):
            detail = f"{name}: annotation {annotation[:200]}; none that begins {ORDERS} is allowed"
            raise StartRefused("image_unusable", detail, True)


def call(program: str, limit_s: float, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the engine on the node's own store. Raises OSError, TimeoutExpired."""
    return subprocess.run(
        [program, *words],
        env=CLIENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit_s,
        check=False,
    )


def _refused(image: str, stderr: str) -> StartRefused:
    """Return why an image could not be pulled: its registry knows none, or did not answer."""
    line = (stderr.strip().splitlines() or ["no reason is known"])[-1]
    detail = f"{image[:200]}: {line.removeprefix('Error: ')[-SHOWN_CHARS:]}"
    if MISSING.search(line) and "no such host" not in line:
        return StartRefused("image_not_found", detail, True)
    return StartRefused("image_unreachable", detail, False)
