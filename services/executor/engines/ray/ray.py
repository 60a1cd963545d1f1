"""Backend `ray`: one job of Ray per worker, by the API of its dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from time import monotonic
from typing import TypeVar

from services.executor.core.engines.contract import (
    Action,
    EngineState,
    Forbid,
    Forget,
    GangProgress,
    Kill,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.unrunnable import unsupported
from services.executor.core.ray.foreign import foreign_jobs, node_names
from services.executor.core.ray.names import ref_of, submission_id
from services.executor.core.ray.parse import jobs_of, living_gangs, nodes_of, own_rows, unproven
from services.executor.core.ray.submission import RayOptions, job_requests, wrapper_inputs
from services.executor.engines.engine import EngineAway
from services.executor.engines.noted_folder import reachable
from services.executor.engines.ray import worker
from services.executor.engines.ray.api import RayApi, RayRefusal
from services.executor.engines.ray.folder import RayFolder
from shared.contracts.failures import Failure
from shared.contracts.nodes import Backend

T = TypeVar("T")


class RayEngine:
    """`root` is the folder that nodes and executor share."""

    backend: Backend = "ray"

    def __init__(self, api: RayApi, root: Path, options: RayOptions) -> None:
        self._api = api
        self._root = root
        self._options = options
        self._addresses: dict[str, str] = {}
        """Of the nodes at the last look."""
        self._over_s: dict[str, float] = {}
        """When the wrappers of a gang that Ray lost will have ended it; a restart waits anew."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Ray is looked at, and not watched: keep the client until cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._api.close()

    def refusal(self, gang: EngineGang) -> Failure | None:
        if image := gang.launch.image:
            return unsupported(f"image: {image!r}; no images are run there", permanent=True)
        return None

    async def observe(self, identities: Collection[str]) -> EngineState:
        """Look at Ray first: what ended before the look has noted its end by now."""
        jobs, nodes, actors, tasks, groups = await asyncio.gather(
            self._api.jobs(),
            self._api.listed("nodes"),
            self._api.listed("actors", ("state", "ALIVE")),
            self._api.listed("tasks", ("state", "RUNNING")),
            self._api.listed("placement_groups", ("state", "CREATED")),
        )
        try:
            gangs, seen = own_rows(jobs), nodes_of(nodes)
            with reachable(self._root):
                names = {*identities, *living_gangs(gangs)}
                progress = await asyncio.to_thread(self._progress, names)
                held = await self._held(unproven(gangs, progress))
            own = {row["submission_id"] for rows in gangs.values() for row in rows}
            work = foreign_jobs(actors, tasks, groups, node_names(nodes), own)
            known = jobs_of(gangs, progress, held)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Another release of Ray may show its objects in another form.
            raise EngineAway(f"an answer is not understood: {error!r}") from error
        self._addresses = {name: node.address for name, node in seen.items()}
        return EngineState(seen, (*known, *work), {name: progress[name] for name in identities})

    def _progress(self, identities: Collection[str]) -> dict[str, GangProgress]:
        return {name: RayFolder(self._root, ref_of(name)).progress() for name in identities}

    async def _held(self, lost: set[str]) -> set[str]:
        """Return the lost gangs whose wrappers may not have ended them yet."""
        new = lost - self._over_s.keys()
        bounds_s = await asyncio.to_thread(lambda: {name: self._bound_s(name) for name in new})
        now_s = monotonic()
        begun = {name: now_s + bound_s for name, bound_s in bounds_s.items()}
        self._over_s = {name: s for name, s in {**self._over_s, **begun}.items() if name in lost}
        return {name for name, over_s in self._over_s.items() if now_s < over_s}

    def _bound_s(self, identity: str) -> float:
        """Return how long a worker may live of which Ray shows no job.

        Its wrapper may have the setting of an earlier executor.
        """
        stop_after_s = self._folder(ref_of(identity)).stop_after_s()
        return worker.CLOCK_RATE * (max(stop_after_s, self._options.stop_after_s) + worker.KILL_S)

    async def act(self, action: Action) -> Failure | None:
        with reachable(self._root):
            return await self._act(action)

    async def _act(self, action: Action) -> Failure | None:
        match action:
            case Submit(gang=gang):
                return await self._submit(gang)
            case Start(gang=gang, ref=ref):
                await asyncio.to_thread(self._folder(ref).start, gang.master_port)
            case Forbid(identity=identity):
                await asyncio.to_thread(self._folder(ref_of(identity)).forbid)
            case Signal(ref=ref):
                await asyncio.to_thread(self._folder(ref).signal, worker.TERM)
            case Kill(ref=ref, has_program=has_program):
                await asyncio.to_thread(self._folder(ref).signal, worker.KILL)
                if not has_program:
                    await _of_each(self._api.stop, await self._jobs(ref))
            case Forget(ref=ref):
                await _of_each(self._api.delete, await self._jobs(ref))
        return None

    async def _jobs(self, ref: str) -> list[str]:
        """Return the ids of a gang's jobs in Ray."""
        ranks = await asyncio.to_thread(self._folder(ref).ranks)
        return [submission_id(ref, rank) for rank in ranks]

    async def _submit(self, gang: EngineGang) -> Failure | None:
        if failure := self.refusal(gang):
            return failure
        folder = self._folder(ref_of(gang.identity))
        try:
            requests = job_requests(gang, str(folder.path), self._addresses)
            inputs = wrapper_inputs(gang, self._options, self._addresses)
        except KeyError as error:
            raise EngineAway(f"Ray does not show node {error.args[0]}") from None
        await asyncio.to_thread(folder.write, inputs)
        try:
            await _of_each(self._api.submit, requests.values())
        except RayRefusal as error:
            return Failure(reason="engine_refused", detail=f"Ray: {error}"[:1024])
        return None

    def _folder(self, ref: str) -> RayFolder:
        return RayFolder(self._root, ref)

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes:
        return await asyncio.to_thread(self._folder(ref_of(identity)).output, rank, offset)


async def _of_each(call: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Make a call for each; raise the first error once all have ended."""
    for outcome in await asyncio.gather(*map(call, items), return_exceptions=True):
        if outcome is not None:
            raise outcome
