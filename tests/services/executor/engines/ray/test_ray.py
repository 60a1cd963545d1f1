"""The engine beside a dashboard of the test's own, and what it makes of Ray's refusals."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.executor.core.engines.contract import EnginePhase, Forbid, Forget, Kill, Start, Submit
from services.executor.core.ray.names import ref_of
from services.executor.core.ray.submission import LONGEST_S, RayOptions
from services.executor.engines.engine import EngineAway
from services.executor.engines.ray import ray
from services.executor.engines.ray.api import RayApi
from services.executor.engines.ray.folder import RayFolder
from services.executor.engines.ray.ray import RayEngine
from tests.services.executor.core.engines.looks import IDENTITY, gang_of, placed_history

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
REF = ref_of(IDENTITY)
STOP_AFTER_S = 60.0
BOUND_S = 1.05 * (STOP_AFTER_S + 5)
TAKEN = 'Traceback\nRuntimeError: 400: ValueError: Job with submission_id x already exists.\n"at"'


class Dashboard:
    """Keeps jobs as Ray does: an id is taken once."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.stopped: list[str] = []
        self.fault = ""
        self.status = 400
        self.token = self.address = ""
        self.nodes: Any = [
            {
                "node_id": name,
                "node_ip": f"10.0.0.{number}",
                "node_name": name,
                "state": "ALIVE",
                "start_time_ms": 1,
                "resources_total": {"CPU": 8.0, "GPU": 2.0, "memory": 2.0**36},
            }
            for number, name in enumerate(("n1", "n2"), 1)
        ]

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self.guard])
        application.router.add_get("/api/jobs/", self.listed)
        application.router.add_post("/api/jobs/", self.submitted)
        application.router.add_post("/api/jobs/{job}/stop", self.stop)
        application.router.add_delete("/api/jobs/{job}", self.deleted)
        application.router.add_get("/api/v0/{kind}", self.objects)
        return application

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, text="Unauthorized: Missing authentication token")
        return await handler(request)

    async def listed(self, request: web.Request) -> web.Response:
        return web.json_response(list(self.jobs.values()))

    async def submitted(self, request: web.Request) -> web.Response:
        job = await request.json()
        if self.fault:
            return web.Response(status=self.status, text=f"Traceback\nValueError: {self.fault}\n")
        if job["submission_id"] in self.jobs:
            return web.Response(status=500, text=TAKEN)
        self.jobs[job["submission_id"]] = {**job, "status": "RUNNING"}
        return web.json_response({})

    async def stop(self, request: web.Request) -> web.Response:
        job = request.match_info["job"]
        if job not in self.jobs:
            return unknown(job)
        self.stopped.append(job)
        return web.json_response({})

    async def deleted(self, request: web.Request) -> web.Response:
        job = request.match_info["job"]
        return web.json_response({}) if self.jobs.pop(job, None) else unknown(job)

    async def objects(self, request: web.Request) -> web.Response:
        rows = self.nodes if request.match_info["kind"] == "nodes" else []
        return web.json_response({"data": {"result": {"result": rows}}})


def unknown(job: str) -> web.Response:
    return web.Response(status=404, text=f"Job {job} does not exist")


@pytest.fixture
def dashboard() -> Dashboard:
    return Dashboard()


@pytest.fixture
async def engine(dashboard: Dashboard, tmp_path: Path) -> AsyncIterator[RayEngine]:
    async with TestServer(dashboard.application()) as server:
        dashboard.address = address = str(server.make_url("")).rstrip("/")
        api = RayApi(address, tmp_path / "token")
        (tmp_path / "token").write_text("good\n")
        yield RayEngine(api, tmp_path, RayOptions(address, STOP_AFTER_S))
        await api.close()


async def phase(engine: RayEngine) -> EnginePhase:
    [job] = (await engine.observe([IDENTITY])).jobs_of(IDENTITY)
    return job.phase


async def test_a_gang_that_is_submitted_twice_is_there_once(
    engine: RayEngine, dashboard: Dashboard
) -> None:
    gang = gang_of(placed_history())
    await engine.observe([IDENTITY])
    assert await engine.act(Submit(gang)) is None
    assert await engine.act(Submit(gang)) is None
    assert list(dashboard.jobs) == [f"{REF}.{rank}" for rank in range(3)]
    assert await phase(engine) is EnginePhase.RUNNING


async def test_a_refusal_has_the_last_words_of_ray(engine: RayEngine, dashboard: Dashboard) -> None:
    await engine.observe([IDENTITY])
    dashboard.fault = "no such resource"
    failure = await engine.act(Submit(gang_of(placed_history())))
    assert failure is not None and failure.reason == "engine_refused"
    assert failure.detail == "Ray: ValueError: no such resource"


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_what_may_pass_refuses_no_gang(
    engine: RayEngine, dashboard: Dashboard, status: int
) -> None:
    await engine.observe([IDENTITY])
    dashboard.fault, dashboard.status = "not now", status
    with pytest.raises(EngineAway, match=f"{status} ValueError: not now"):
        await engine.act(Submit(gang_of(placed_history())))


async def test_a_dashboard_that_needs_a_token_gets_that_of_the_file(
    engine: RayEngine, dashboard: Dashboard, tmp_path: Path
) -> None:
    dashboard.token = "good"
    await engine.observe([IDENTITY])
    dashboard.token = "new"
    with pytest.raises(EngineAway, match="401 Unauthorized"):
        await engine.observe([IDENTITY])
    (tmp_path / "token").write_text("new")
    await engine.observe([IDENTITY])
    (tmp_path / "token").unlink()
    with pytest.raises(EngineAway, match="token"):
        await engine.observe([IDENTITY])


@pytest.mark.parametrize("nodes", [[{}], ["n1"], [{"node_id": 1, "node_ip": "x"}], None, "html"])
async def test_answers_of_another_form_are_no_look(
    engine: RayEngine, dashboard: Dashboard, nodes: Any
) -> None:
    dashboard.nodes = nodes
    with pytest.raises(EngineAway):
        await engine.observe([IDENTITY])


async def test_a_node_that_was_not_seen_takes_no_gang(engine: RayEngine) -> None:
    with pytest.raises(EngineAway, match="n2"):
        await engine.act(Submit(gang_of(placed_history())))


async def test_what_ray_forgot_is_held_for_the_bound_of_its_wrappers(
    engine: RayEngine, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(ray, "monotonic", lambda: now_s)
    gang = gang_of(placed_history())
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang))
    await engine.act(Start(gang, REF))
    dashboard.jobs.clear()
    assert await phase(engine) is EnginePhase.ENDING
    now_s += BOUND_S - 0.1
    assert await phase(engine) is EnginePhase.ENDING
    now_s += 0.2
    assert await phase(engine) is EnginePhase.ENDED


async def test_a_bound_that_was_shortened_meanwhile_is_that_of_the_wrappers(
    engine: RayEngine, dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(ray, "monotonic", lambda: now_s)
    gang = gang_of(placed_history())
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang))
    await engine.act(Start(gang, REF))
    api = RayApi(dashboard.address)
    shorter = RayEngine(api, tmp_path, RayOptions(dashboard.address, 1.0))
    await shorter.observe([IDENTITY])
    await shorter.act(Submit(gang))
    dashboard.jobs.clear()
    assert await phase(shorter) is EnginePhase.ENDING
    now_s += BOUND_S - 0.1
    assert await phase(shorter) is EnginePhase.ENDING
    now_s += 0.2
    assert await phase(shorter) is EnginePhase.ENDED
    await api.close()


async def test_what_a_program_writes_into_its_folder_stops_no_executor(
    engine: RayEngine, dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(ray, "monotonic", lambda: now_s)
    gang = gang_of(placed_history())
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang))
    await engine.act(Start(gang, REF))
    (tmp_path / REF / "rank-0.json").write_text("no object")
    (tmp_path / REF / "rank-1.json").unlink()
    os.mkfifo(tmp_path / REF / "rank-1.json")
    (tmp_path / REF / "rank-x.json").touch()
    await engine.act(Kill(REF))
    assert sorted(dashboard.stopped) == sorted(dashboard.jobs)
    dashboard.jobs.clear()
    assert await phase(engine) is EnginePhase.ENDING
    now_s += 1.05 * (LONGEST_S + 5) + 0.1
    assert await phase(engine) is EnginePhase.ENDED


async def test_a_start_after_a_prohibition_begins_nothing(
    engine: RayEngine, tmp_path: Path
) -> None:
    gang = gang_of(placed_history())
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang))
    await engine.act(Forbid(IDENTITY))
    await engine.act(Start(gang, REF))
    progress = RayFolder(tmp_path, REF).progress()
    assert progress.is_forbidden and not progress.is_begun


async def test_a_kill_of_programs_alone_leaves_rays_jobs_to_end_by_themselves(
    engine: RayEngine, dashboard: Dashboard, tmp_path: Path
) -> None:
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang_of(placed_history())))
    await engine.act(Kill(REF, has_program=True))
    assert (tmp_path / REF / "signal-kill").exists() and dashboard.stopped == []
    dashboard.jobs.pop(f"{REF}.0")
    await engine.act(Kill(REF))
    assert sorted(dashboard.stopped) == sorted(dashboard.jobs)


async def test_what_is_over_and_released_is_forgotten(
    engine: RayEngine, dashboard: Dashboard
) -> None:
    await engine.observe([IDENTITY])
    await engine.act(Submit(gang_of(placed_history())))
    await engine.act(Forget(REF))
    await engine.act(Forget(REF))
    assert dashboard.jobs == {}
