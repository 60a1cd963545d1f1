"""The agent in a container: it joins once, by the token that the first start leaves, then runs.

`python infra/image/node.py GATEWAY CA`; the settings are those of `infra/nodes/local.toml`. It is
root there, so that each tenant's jobs have a user, folders and limits of their own.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

NODE = "local"
CONFIG = Path(__file__).parents[1] / "nodes" / "local.toml"
TOKEN = Path("/node/join.token")
DATA = Path("/data")
PASSABLE = 0o711
"""Jobs of other users reach their folders below, and can list none."""
POLL_S = 0.5
NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT, BIND = 2, 4, 8, 32, 4096


def main(gateway: str, ca: str, config: Path = CONFIG, token: Path = TOKEN) -> int:
    """Join unless there is an identity, then become the agent; return its exit code."""
    from berth_agent import cli
    from berth_agent.node import config as settings

    head = ["--config", str(config)]
    if not Path(settings.load(config, {}).state, "identity.json").exists():
        while not token.exists():
            time.sleep(POLL_S)
        words = ["--node-id", NODE, "--ca", ca, "--token", token.read_text().strip()]
        if code := cli.main([*head, "join", gateway, *words]):
            return code
    return cli.main([*head, "run"])


def take_over(data: Path) -> None:
    """Make the data folder root's, with what an agent of an earlier release left in it.

    By a program of the image: a tree that a job has made may be deeper than a path is long, and
    than Python recurses. It follows no link, and the folder itself comes last: a run that was cut
    off begins anew. Raises CalledProcessError.
    """
    own_uid, own_gid = os.geteuid(), os.getegid()
    if data.stat().st_uid != own_uid:
        owner, entries = f"{own_uid}:{own_gid}", [entry.path for entry in os.scandir(data)]
        for path in entries:
            subprocess.run(["chown", "-hRP", owner, "--", path], check=True)
        os.chown(data, own_uid, own_gid)
    data.chmod(PASSABLE)


def open_groups(mountinfo: str = "/proc/self/mountinfo") -> None:
    """Let the agent make control groups below the container's own, where the kernel permits it.

    Docker mounts them read-only; without them the container alone is bounded.
    """
    from berth_agent.linux.libc import function

    mount, flags = function("mount"), REMOUNT | BIND | NO_SUID | NO_DEVICES | NO_EXEC
    for line in Path(mountinfo).read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.startswith(("cgroup ", "cgroup2 ")):
            mount(None, fields.split()[4].encode(), None, flags, None)


if __name__ == "__main__":
    take_over(DATA)
    open_groups()
    sys.exit(main(sys.argv[1], sys.argv[2]))
