"""The API: routes over the parts, one shape of errors, one life span."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from services.gateway import docs, problem
from services.gateway.parts import Gateway
from services.gateway.routes import admin, faults, jobs, llm, nodes, probes, streams

VERSION = "1"


def build(parts: Gateway) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with parts.running():
            yield

    app = FastAPI(title="Berth", version=VERSION, lifespan=lifespan, redoc_url=None)
    app.state.gateway = parts
    problem.install(app, parts.attempts.note)
    docs.install(app)
    for routes in (probes, streams, jobs, nodes, faults, admin, llm):
        app.include_router(routes.router)
    return app
