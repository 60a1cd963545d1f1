"""Settings of the agent: a TOML file, replaced by flags."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from berth_agent import file_names
from berth_agent.linux.seccomp import is_known

DEFAULT_FILE = Path("/etc/berth-agent/config.toml")

log = logging.getLogger(__name__)


class ConfigError(ValueError):
    """A setting is wrong: `name: what is wrong: value; what is allowed`."""


PATHS = ("state", "run", "work", "prolog", "epilog")
"""Settings that are paths: a relative one begins in the folder of the command."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings by which this node runs workers. Sizes are named by their units."""

    state: str = "/var/lib/berth-agent"
    """Folder that survives a reboot, on a local disk."""
    run: str = "/run/berth-agent"
    """Folder that a reboot empties."""
    work: str = ""
    """Private directories of workers; empty: `work` in the state folder."""
    gpu_type: str = "cpu"
    gpus: int = -1
    """GPUs, in devices; -1: as the driver lists them."""
    unusable_gpus: tuple[int, ...] = ()
    cpus: float = 0.0
    """CPU cores; 0: all."""
    mem_gib: float = 0.0
    """Memory, GiB; 0: all."""
    rack: str = ""
    address: str = ""
    """Address at which workers of other nodes reach this one; empty: found by the first session."""
    labels: dict[str, str] = field(default_factory=dict)
    pid_namespaces: bool = True
    """Whether workers get a pid namespace where the kernel permits it."""
    private_tmp: bool = True
    """Whether a job gets its own /tmp, /var/tmp and /dev/shm where the kernel permits it."""
    cgroups: bool = True
    max_pids: int = 32768
    """Processes and threads of one worker."""
    seccomp: bool = False
    """Whether programs of jobs get a filter of system calls; those of images have the engine's."""
    output_mib: float = 64.0
    """Size at which the output of one worker is cut, MiB."""
    reserve_mib: float = 16.0
    """Space of the state folder that is kept for a full disk, MiB; 0: none."""
    keep_ended: int = 200
    """Ended workers whose folders and private directories are kept for inspection; the oldest go
    first, and as soon as one of these four limits is passed."""
    keep_ended_gib: float = 50.0
    keep_ended_days: float = 7.0
    keep_free_gib: float = 5.0
    """Free space of the disk of private directories below which ended workers' files go, and of
    the disk of images below which those go that jobs have brought and no worker names."""
    login_shell: bool = True
    """Whether workers get the environment of a login shell of their user."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of every worker; those of its job replace them."""
    umask: str = "022"
    users: dict[str, str] = field(default_factory=dict)
    """`tenant/user`, else `tenant` -> UNIX user that their jobs run as; needs root."""
    uid_first: int = 70_000
    """Uid of the installation's first tenant where the agent is root; that of another without a
    user is higher by its number, so it is the same on all nodes that have one `uid_first`. 0:
    workers run as the agent does, also as root."""
    uid_count: int = 10_000
    """Uids of tenants, from `uid_first` on; no user of the machine may have one of them."""
    port_first: int = 20_000
    """First port that rank 0 of a gang may listen on."""
    port_count: int = 10_000
    images: bool = True
    """Whether jobs with an image run in a container where Podman is found; needs root."""
    image_mounts: dict[str, str] = field(default_factory=dict)
    """Folder -> `ro` or `rw`: what every container sees of the node, at the same place."""
    image_pull_s: float = 1800.0
    """Longest s in which an image is pulled."""
    bundle_gib: float = 16.0
    """Most bytes of the files of one bundle, unpacked, GiB."""
    image_gib: float = 64.0
    """Most that the pull of one image may write, compressed and unpacked files together, GiB; 0:
    as much as its disk has."""
    disk_gib: float = 0.0
    """Most that the files of one worker may take, GiB: its private directory, its part of the
    job's /tmp and /var/tmp, and the layer of its container. 0: as much as the disk has."""
    prolog: str = ""
    """Executable before each worker; if it fails, the node is drained."""
    epilog: str = ""
    """Executable after each worker."""
    hook_s: float = 60.0
    """Longest s of a prolog, an epilog or a check."""
    kill_s: float = 15.0
    """s after SIGKILL at which a worker that still lives is reported as stuck."""
    keep_workers: bool = True
    """Whether workers run on when the agent is to stop; false: they are stopped with it."""
    lines_per_s: float = 500.0
    """Lines of one worker that are streamed per second; the others stay in the file."""
    measure_every_s: float = 60.0
    """s between readings of the GPUs; each tenth time processors are probed for some 0.1 s if no
    worker runs. 0: never."""

    @property
    def reserve_path(self) -> str:
        return f"{self.state}/{file_names.RESERVE}"

    @property
    def work_folder(self) -> str:
        return self.work or f"{self.state}/{file_names.WORK}"


def load(path: Path | None, flags: Mapping[str, Any]) -> Config:
    """Read the file, if there is one, and apply the flags. Raises ConfigError, OSError.

    Names that this version does not know are warned of: the file may be that of a newer one.
    """
    values: dict[str, Any] = {}
    chosen = path or DEFAULT_FILE
    if path is not None or chosen.exists():
        try:
            values = tomllib.loads(chosen.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{chosen}: {error}") from None
    names = {f.name for f in fields(Config)}
    for name in sorted(values.keys() - names):
        log.warning("%s: %s: unknown setting, ignored", chosen, name)
        del values[name]
    overrides = {name: value for name, value in flags.items() if value is not None}
    return make({**values, **overrides})


def make(values: Mapping[str, Any]) -> Config:
    """Check the values. Raises ConfigError."""
    defaults = Config()
    known = {f.name: getattr(defaults, f.name) for f in fields(Config)}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"{name}: unknown setting; {', '.join(known)} are allowed")
        _check(name, value, known[name])
    converted = {name: _converted(value, known[name]) for name, value in values.items()}
    # Steps leave the folder in which the agent was started.
    paths = {name: os.path.abspath(converted[name]) for name in PATHS if converted.get(name)}
    return Config(**{**converted, **paths})


def _check(name: str, value: object, default: object) -> None:
    match default:
        case bool():
            right = isinstance(value, bool)
        case int():
            right = isinstance(value, int) and not isinstance(value, bool)
        case float():
            right = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        case str():
            right = isinstance(value, str)
        case tuple():
            right = isinstance(value, list) and all(isinstance(item, int) for item in value)
        case _:
            right = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if not right:
        raise ConfigError(f"{name}: {value!r}; {type(default).__name__} is allowed")
    if name == "uid_first" and int(str(value)) < 0:
        raise ConfigError(f"uid_first: {value}; 0 or more is allowed")
    if check := CHECKS.get(name):
        check(value)


def _check_filter(value: bool) -> None:
    if value and not is_known(machine := os.uname().machine):
        raise ConfigError(f"seccomp: true; only false is allowed on {machine}")


def _check_mounts(mounts: dict[str, str]) -> None:
    for path, mode in mounts.items():
        if not path.startswith("/") or path == "/" or ":" in path or mode not in ("ro", "rw"):
            rule = "the absolute path of a folder without ':', and 'ro' or 'rw' are allowed"
            raise ConfigError(f"image_mounts: {path!r} = {mode!r}; {rule}")


def _check_umask(value: str) -> None:
    if not value or set(value) - set("01234567") or int(value, 8) > 0o777:
        raise ConfigError(f"umask: {value!r}; an octal number up to 777 is allowed")


CHECKS: dict[str, Callable[[Any], None]] = {
    "image_mounts": _check_mounts,
    "seccomp": _check_filter,
    "umask": _check_umask,
}
"""Rules of settings beside their types."""


def _converted(value: Any, default: object) -> Any:
    match default:
        case float():
            return float(value)
        case tuple():
            return tuple(value)
        case _:
            return value
