"""The stage of a real Ray: each worker is a job of it, on the node that Berth chose."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from infra.ray.cluster import ADDRESSES, GPUS, NODES, RAY, RayCluster
from services.executor.core.ray.submission import RayOptions
from services.executor.engines.ray.api import RayApi
from services.executor.engines.ray.ray import RayEngine
from services.executor.engines.server import EngineServer
from services.executor.settings import ExecutorSettings
from tests.services.executor.conformance.stages import EngineStage, pools

STOP_AFTER_S = 60.0
WRAPPER = "worker.py"
OVER = ("SUCCEEDED", "FAILED", "STOPPED")


class RayStage(EngineStage):
    """All nodes of a cluster; the gangs of a stage have a pool of their own."""

    BACKEND = "ray"
    LACKS = {
        "requeue": "Ray starts no job a second time",
        "drains": "a drained node leaves Ray once it is idle, and shows no drain before",
    }
    ADDRESS = ADDRESSES["g2"]
    WAITS = ("engine_waits", "waiting for resources")
    ZOMBIE = "step_lost"

    def __init__(self, folder: Path, cluster: RayCluster) -> None:
        self.name = f"pool{next(pools)}"
        super().__init__(folder, pool=self.name, backends=("ray",), release=1)
        self.expected_nodes = len(NODES)
        self.cluster = cluster
        self.stop_after_s = STOP_AFTER_S
        self.shared = cluster.shared / self.name
        self.names = Counter[str]()

    def make(self, settings: ExecutorSettings) -> EngineServer:
        options = RayOptions(self.cluster.address, self.stop_after_s)
        engine = RayEngine(RayApi(self.cluster.address, self._token_file()), self.shared, options)
        return EngineServer(settings, self.name, engine, self.connect, self.metrics)

    def _token_file(self) -> Path | None:
        if not self.cluster.token:
            return None
        path = self.folder / "token"
        path.write_text(self.cluster.token)
        return path

    def start(self, **more: object) -> None:
        # A worker of Ray takes seconds to start on a machine with few cores.
        own = {"nodes": None, "ray_pool": self.name, "ray_folder": self.shared}
        super().start(**{**own, "ray_poll_s": 0.2, "ray_pending_s": 120, **more})

    async def serving(self, **more: object) -> None:
        self.placement.write([self.pool])
        await super().serving(**more)

    def second(self) -> RayStage:
        other = RayStage(self.folder / "other", self.cluster)
        other.broker, other.name, other.shared = self.broker, self.name, self.shared
        return other

    def refs(self) -> list[str]:
        """Return the gangs that Ray runs or may still run."""
        living = (job for job in self.cluster.jobs() if job["status"] not in OVER)
        mine = (
            job["submission_id"].rpartition(".")[0]
            for job in living
            if f":{self.name}:" in (job["metadata"] or {}).get("berth.identity", "")
        )
        return [ref for ref in dict.fromkeys(mine) if not self._is_forbidden(ref)]

    def _is_forbidden(self, ref: str) -> bool:
        link = self.shared / ref / "decided"
        return link.is_symlink() and str(link.readlink()) == "forbidden"

    def runs_of(self, place: str) -> int:
        [folder] = self.shared.glob(f"*~{place.replace('/', '-')}")
        return (folder / "rank-0.out").read_text().split().count("ran")

    def kill_controller(self) -> None:
        """Kill the head, whose state nothing keeps; nodes end without it and are started again."""
        for name in ("head", *NODES):
            self.cluster.kill(name)
        self.cluster.start()

    def resume(self, node: str) -> None:
        self.cluster.kill(node)
        self.cluster.start_node(node)

    async def occupy(self, node: str, gpus: int) -> tuple[str, set[str]]:
        self.names["other"] += 1
        name = f"{self.name}-other-{self.names['other']}"
        request = {
            "submission_id": name,
            "entrypoint": 'echo "gpus=$CUDA_VISIBLE_DEVICES"; exec sleep 300',
            "entrypoint_num_gpus": gpus,
            "entrypoint_resources": {f"node:{ADDRESSES[node]}": 0.001},
        }
        assert self.cluster.request("POST", "/api/jobs/", request)
        await self.until(lambda: "\ngpus=" in self._log(name))
        seen = self._log(name).rpartition("\ngpus=")[2].split()[0]
        return f"Ray job {name}", set(seen.split(","))

    def _log(self, job: str) -> str:
        return str((self.cluster.request("GET", f"/api/jobs/{job}/logs") or {}).get("logs", ""))

    async def hold_back(self) -> None:
        await self.begin("j1", self.spec("echo begun; sleep 300"), ("g1", range(GPUS)))
        await self.crash()
        self.start(ray_pending_s=1)

    def freeze(self, node: str) -> None:
        self.cluster.signal(node, SIGSTOP, (*RAY, WRAPPER))

    def thaw(self, node: str) -> None:
        self.cluster.signal(node, SIGCONT, (*RAY, WRAPPER))

    async def cancel(self, ref: str) -> None:
        self.cluster.request("POST", f"/api/jobs/{ref}.0/stop")

    async def give_up(self, node: str) -> None:
        await self.until(lambda: not self.cluster.is_alive(node))

    async def clean(self) -> None:
        await super().clean()
        for folder in self.shared.glob("*"):
            (folder / "signal-kill").touch()
        while living := [job for job in self.cluster.jobs() if job["status"] not in OVER]:
            for job in living:
                self.cluster.request("POST", f"/api/jobs/{job['submission_id']}/stop")
            await asyncio.sleep(0.3)
