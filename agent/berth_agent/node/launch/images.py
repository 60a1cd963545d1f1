"""Images of containers, in the store of the node's engine."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import monotonic, time
from typing import Any

from berth_agent import file_names
from berth_agent.core.environment import DEFAULT_PATH
from berth_agent.core.image_names import full_name
from berth_agent.linux import disk, files, processes
from berth_agent.node.config import Config
from berth_agent.step.checks import StartRefused
from berth_agent.token_names import TOKEN

CLIENT = {"PATH": DEFAULT_PATH}
"""Variables of the engine: it runs as root, and gets none of a job."""
CALL_S = 30.0
MISSING = re.compile(
    "manifest unknown|not found|denied|unauthorized|image not known|invalid reference", re.I
)
FULL = os.strerror(errno.ENOSPC).lower()
REMOVE_S = 300.0
POLL_S = 0.5
END_S = 5.0
SHOWN_CHARS = 300
FREE_GIB = 1.0
"""Free space of the disk of images below which a pull ends, before anything else notices."""
ORDERS = "run.oci."
"""Begins annotations that the container runtime obeys, such as to load another seccomp filter."""

log = logging.getLogger(__name__)


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
        self.store = engine.store if engine else ""
        """Folder of the node's images; empty: none."""
        self._path = f"{config.state}/{file_names.IMAGES}"
        self._lock = threading.Lock()
        """Held while an image is looked up, or removed."""
        self._closing = threading.Event()
        self._pulls = 0
        self._changed = threading.Condition()
        self._scratch = f"{config.state}/{file_names.PULLS}"
        # Of an agent that was killed.
        disk.remove(self._scratch)

    def close(self) -> None:
        """End the pulls with the agent; the next agent pulls again what it still has to start."""
        self._closing.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._pulls, END_S + CALL_S)

    def pull(self, image: str, token: str, stopped: Callable[[], str]) -> str:
        """Return the id of the image, which is pulled unless it is there.

        `token` marks the pull as the worker's, and `stopped` returns why it is not needed any
        more, empty while it is. Raises StartRefused, OSError.
        """
        if not self._program or not os.path.exists(self._program):
            detail = f"image: {image[:200]}; this node has no engine for containers"
            raise StartRefused("no_container_runtime", detail, False)
        try:
            name = full_name(image)
        except ValueError as error:
            raise StartRefused("image_not_found", f"image: {error}", True) from None
        try:
            present = self._use(name)
            if present is None:
                self._pull(name, token, stopped)
                present = self._use(name, pulled=True)
        except subprocess.TimeoutExpired as error:
            detail = f"{name}: no answer within {error.timeout:g} s"
            raise StartRefused("image_unreachable", detail, False) from None
        if present is None:
            raise StartRefused("image_unreachable", f"{name}: pulled, and removed again", False)
        _check_annotations(name, present)
        return str(present["Id"])

    def remove_oldest(self, held: Callable[[], Collection[str]]) -> bool:
        """Remove that which was used least recently of the images that jobs have brought.

        `held` returns names of images of present workers. Return whether there was one. Those
        that an operator has pulled, or has in a container, stay. Raises OSError, TimeoutExpired.
        """
        with self._lock:
            used = self._read_used()
            kept = {_full_or_empty(image) for image in held()}
            oldest_first = sorted(used, key=lambda name: used[name])
            name = next((name for name in oldest_first if name not in kept), "")
            if not name:
                return False
            if self._inspect(name) is not None:
                call(self._program, REMOVE_S, "rmi", "--", name)
                log.info("image %s: removed, as its disk has less than keep_free_gib", name)
            del used[name]
            files.write_json(self._path, used)
        return True

    def _use(self, name: str, *, pulled: bool = False) -> dict[str, Any] | None:
        """Look an image up, and note when: one that an operator has pulled is not noted."""
        with self._lock:
            present, used = self._inspect(name), self._read_used()
            if present is not None and (pulled or name in used):
                files.write_json(self._path, {**used, name: time()})
        return present

    def _read_used(self) -> dict[str, float]:
        try:
            document = files.read_json(self._path) or {}
            return {str(name): float(at_s) for name, at_s in document.items()}
        except (ValueError, TypeError, AttributeError):
            return {}

    def _pull(self, name: str, token: str, stopped: Callable[[], str]) -> None:
        """Pull an image, and count the pull. Raises StartRefused, TimeoutExpired, OSError."""
        with self._changed:
            self._pulls += 1
        try:
            self._run_pull(name, token, stopped)
        finally:
            with self._changed:
                self._pulls -= 1
                self._changed.notify_all()

    def _run_pull(self, name: str, token: str, stopped: Callable[[], str]) -> None:
        if self._closing.is_set():
            raise _closed(name)
        # A name of another transport, such as dir:, could read files of the node.
        command = [self._program, "pull", "-q", f"docker://{name}"]
        ends_s = monotonic() + self._config.image_pull_s
        os.makedirs(self._scratch, mode=0o700, exist_ok=True)
        # A pull that is ended leaves what it has fetched there.
        fetched = tempfile.mkdtemp(dir=self._scratch)
        process = subprocess.Popen(
            command,
            env={**CLIENT, TOKEN: token, "TMPDIR": fetched},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        try:
            while (errors := _read_end(process)) is None:
                self._check_space(name, token)
                if reason := stopped():
                    raise StartRefused(reason, f"{name}: its pull was ended", False)
                if self._closing.is_set():
                    raise _closed(name)
                if monotonic() > ends_s:
                    raise subprocess.TimeoutExpired(command, self._config.image_pull_s)
        finally:
            _end(process)
            disk.remove(fetched)
        if process.returncode != 0:
            raise _refused(name, errors)

    def _check_space(self, name: str, token: str) -> None:
        """Raise StartRefused for a pull that writes more than it may, or than the disk holds.

        What a registry says of a size before is its own word.
        """
        written_gib = processes.written_bytes(processes.with_token(token)) / disk.GIB
        if 0 < self._config.image_gib < written_gib:
            rule = f"{self._config.image_gib:g} (image_gib) are allowed"
            detail = f"{name}: more than {written_gib:.3g} GiB; {rule}"
            raise StartRefused("image_too_large", detail, True)
        if self._has_filled():
            detail = f"{name}: the disk of images has less than {FREE_GIB:g} GiB free"
            raise StartRefused("disk_full", detail, False)

    def _has_filled(self) -> bool:
        try:
            return min(map(disk.free_gib, (self.store, self._scratch))) < FREE_GIB
        except OSError:
            return False

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


def _full_or_empty(image: str) -> str:
    try:
        return full_name(image)
    except ValueError:
        return ""


def _closed(name: str) -> StartRefused:
    return StartRefused("node_draining", f"{name}: the agent stops", False)


def _read_end(process: subprocess.Popen[str]) -> str | None:
    """Return the errors of a process that has ended, None after a while in which it has not."""
    try:
        return process.communicate(timeout=POLL_S)[1]
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[str]) -> None:
    """End a pull that still runs: it leaves whole layers, by which another one is shorter."""
    process.terminate()
    try:
        process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


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
    if FULL in line:
        return StartRefused("disk_full", detail, False)
    if MISSING.search(line) and "no such host" not in line:
        return StartRefused("image_not_found", detail, True)
    return StartRefused("image_unreachable", detail, False)
