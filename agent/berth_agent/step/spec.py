"""The specification of a worker, which the agent leaves in the folder of its allocation."""

from __future__ import annotations

from berth_agent import file_names
from berth_agent.linux import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Spec:
    """Everything that a step needs: what to run, as which user, within which limits."""

    __slots__ = (
        "argv",
        "cgroups",
        "cwd",
        "enter",
        "env",
        "epilog",
        "gid",
        "grace_s",
        "groups",
        "hook_env",
        "hook_s",
        "image",
        "incarnation",
        "kept",
        "kill_s",
        "layers",
        "lease",
        "max_pids",
        "mounts",
        "notes",
        "output_bytes",
        "owner",
        "pid_namespace",
        "private",
        "prolog",
        "reserve",
        "seccomp",
        "secrets",
        "store",
        "token",
        "uid",
        "umask",
        "variables",
        "wake",
        "walltime_s",
        "workdir",
    )

    def __init__(self, values: dict[str, Any]) -> None:
        self.argv: list[str] = values["argv"]
        self.env: dict[str, str] = values["env"]
        self.cwd: str = values["cwd"]
        self.uid: int | None = values["uid"]
        """User of the worker; None: the agent's."""
        self.owner: int | None = values.get("owner", self.uid)
        """User to whom the worker's folders belong; that of a container's program, whose engine
        runs as the agent does."""
        self.gid: int = values["gid"]
        self.groups: list[int] = values["groups"]
        self.umask: int = values["umask"]
        self.token: str = values["token"]
        self.incarnation: str = values["incarnation"]
        self.grace_s: float = values["grace_s"]
        self.walltime_s: float | None = values["walltime_s"]
        self.kill_s: float = values["kill_s"]
        """s after a SIGKILL at which a worker that still lives is stuck."""
        self.output_bytes: int = values["output_bytes"]
        self.cgroups: list[str] = values["cgroups"]
        self.pid_namespace: bool = values["pid_namespace"]
        self.private: bool = values["private"]
        """Whether `cwd` is the worker's private directory, which the agent made."""
        self.workdir: str = values.get("workdir", self.cwd)
        """Directory of the program; of an image, in its container."""
        self.lease: str = values["lease"]
        """File of the node's lease, replaced at each acknowledged heartbeat."""
        self.wake: str = values["wake"]
        """FIFO that wakes the agent."""
        self.prolog: str = values["prolog"]
        self.epilog: str = values["epilog"]
        self.hook_env: dict[str, str] = values.get("hook_env", {})
        """Variables of prolog and epilog; a step of an older agent has none noted."""
        self.reserve: str = values.get("reserve", "")
        """File whose space is given up on a full disk, so that the end can be noted."""
        self.secrets: str = values.get("secrets", "")
        """File in memory with the values of variables that name a secret; empty: none does."""
        self.notes: list[str] = values.get("notes", [])
        """Lines of the agent that come before the worker's output."""
        self.mounts: list[list[str]] = values.get("mounts", [])
        """Folders of the job, and those of the machine in whose place its workers see them."""
        self.image: bool = values.get("image", False)
        """Whether `argv` is a container engine, which runs the program."""
        self.enter: list[str] = values.get("enter", [])
        """Words of the engine by which a command is run in the container."""
        self.store: str = values.get("store", "")
        """Where the engine notes what it runs: in memory, as variables are among it."""
        self.layers: str = values.get("layers", "")
        """Folder of the store that is on the disk: what the container writes to its own files."""
        self.variables: dict[str, str] = values.get("variables", {})
        """Variables of the program in a container, whose engine has those of `env`."""
        self.kept: list[str] = values.get("kept", [])
        """Folders that the worker reaches also where they are below one that is replaced."""
        self.max_pids: int = values.get("max_pids", 0)
        """Most processes of the user in the worker's own namespace; 0: no such limit."""
        self.seccomp: bool = values.get("seccomp", False)
        """Whether programs of the worker have a filter of system calls."""
        self.hook_s: float = values["hook_s"]
        """Longest s that a prolog, an epilog or a check may take."""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def read(folder: str) -> Spec:
    """Read the specification. Raises OSError, ValueError, KeyError where there is none."""
    values = files.read_json(f"{folder}/{file_names.SPEC}")
    if not isinstance(values, dict):
        raise ValueError(f"{folder}: no specification")
    return Spec(values)
