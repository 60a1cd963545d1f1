"""A real Slurm on this machine: munge, a controller, and a daemon for each of a few nodes.

Nothing is installed: where a program is missing, `missing` names it. GPUs are null devices.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from infra.machine.process import START_S, free_ports

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "scancel", "scontrol")
NODES = ("g1", "g2", "g3")
GPUS = 4
NULL_DEVICE = os.makedev(1, 3)
HOOK = Path(__file__).parent / "hooks" / "berth-hook.sh"
HOOKS = """\
Prolog={script}
Epilog={script}
JobCompType=jobcomp/script
JobCompLoc={script}
"""
CONFIGURATION = """\
ClusterName=berth
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=60
InactiveLimit=0
KillWait=2
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,defer_batch,batch_sched_delay=0,sched_min_interval=0
JobRequeue=1
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=8 Sockets=1 "
    "CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000 Gres=gpu:h100:{gpus}"
)


def missing() -> str:
    """Return why no cluster can be started here, empty if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{absent[0]} is missing: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "Slurm's daemons are started by root alone"


class SlurmCluster:
    """The daemons; each can be killed and started again."""

    def __init__(
        self, folder: Path, patience_s: float = START_S, *, has_hooks: bool = False
    ) -> None:
        """`has_hooks` has Slurm run Berth's script at Prolog, Epilog and the end of each job."""
        self.folder = folder
        self.hooks = folder / "hooks"
        """Folder of the notes of that script."""
        self._has_hooks = has_hooks
        self._patience_s = patience_s
        self.shared = folder / "shared"
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def configure(self) -> None:
        for name in ("state", "shared", "dev", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        for gpu in range(GPUS):
            os.mknod(self.folder / f"dev/nvidia{gpu}", stat.S_IFCHR | 0o666, NULL_DEVICE)
        ports = free_ports(1 + len(NODES))
        lines = [
            NODE.format(name=node, port=port, gpus=GPUS)
            for node, port in zip(NODES, ports[1:], strict=True)
        ]
        text = CONFIGURATION.format(
            controller_port=ports[0], folder=self.folder, nodes="\n".join(lines)
        )
        hooks = HOOKS.format(script=self._install_hook()) if self._has_hooks else ""
        (self.folder / "slurm.conf").write_text(text + hooks)
        self.write_gpus(dict.fromkeys(NODES, GPUS))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainCores=no\n")
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)

    def _install_hook(self) -> Path:
        """Install the script as docs/slurm.md says; return where it is."""
        self.hooks.mkdir(mode=0o755)
        script = self.folder / "etc" / HOOK.name
        script.parent.mkdir()
        shutil.copy(HOOK, script)
        lines = f"notes={self.hooks}\nrun={self.folder}/run\n"
        script.with_suffix(".conf").write_text(lines)
        return script

    def write_gpus(self, gpus: Mapping[str, int]) -> None:
        """Write how many GPUs the daemon of each node finds when it starts."""
        lines = [
            f"NodeName={node} Name=gpu Type=h100 File={self.folder}/dev/nvidia[0-{count - 1}]\n"
            for node, count in gpus.items()
        ]
        (self.folder / "gres.conf").write_text("".join(lines))

    def start(self) -> None:
        self.start_authentication()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self._eventually(
            lambda: self.run("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(NODES),
            "nodes",
        )

    def start_authentication(self) -> None:
        """Start munge, without whose credentials no command and no daemon is heard."""
        self._spawn(
            "munged",
            "munged",
            "--force",
            "--foreground",
            f"--key-file={self.folder}/munge.key",
            f"--socket={self.folder}/munge.sock",
            f"--pid-file={self.folder}/munged.pid",
            f"--log-file={self.folder}/munged.log",
            f"--seed-file={self.folder}/munge.seed",
            "--num-threads=2",
        )
        self._eventually(lambda: (self.folder / "munge.sock").exists(), "munged")

    def start_controller(self) -> None:
        self._spawn("slurmctld", "slurmctld", "-D", "-i")
        self._eventually(lambda: "UP" in self.run("scontrol", "ping"), "slurmctld")

    def start_node(self, node: str) -> None:
        self._spawn(node, "slurmd", "-D", "-N", node)

    def forget(self, since: Path) -> None:
        """Let the controller begin again with a copy of its state, as after a lost disk."""
        self.signal("slurmctld", signal.SIGKILL)
        shutil.rmtree(self.folder / "state")
        shutil.copytree(since, self.folder / "state")
        self.start_controller()

    def signal(self, name: str, number: int) -> None:
        """Signal a daemon: `slurmctld`, or a node's by its name; wait for one that is killed."""
        process = self._processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(self._patience_s)

    def run(self, *command: str) -> str:
        """Return what a command prints, also one that fails."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout

    def stop(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.run("scancel", "--user=root")
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _eventually(self, holds: Callable[[], bool], daemon: str) -> None:
        end_s = time.monotonic() + self._patience_s
        while not holds():
            if time.monotonic() > end_s:
                raise TimeoutError(f"{daemon} did not come up; see {self.folder}")
            time.sleep(0.05)


@contextmanager
def slurm_cluster(
    folder: Path, patience_s: float = START_S, *, has_hooks: bool = False
) -> Iterator[SlurmCluster]:
    """Run a cluster in a folder, whose path has to be short for the socket of munge."""
    cluster = SlurmCluster(folder, patience_s, has_hooks=has_hooks)
    cluster.configure()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
