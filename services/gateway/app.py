"""Assembles the API: routes, one shape of errors, one life span."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from services.gateway.responses import openapi, problem
from services.gateway.routes import (
    audit,
    bundles,
    cancellations,
    dead_letters,
    endpoints,
    enrolment,
    faults,
    identity,
    injections,
    jobs,
    joining,
    llm,
    llm_usage,
    nodes,
    overview,
    pools,
    probes,
    retries,
    secrets,
    shares,
    streams,
    submissions,
    tenants,
    terminals,
    usage,
    users,
    webhooks,
)
from services.gateway.wiring import Gateway

VERSION = "1"
ROUTES = (
    probes,
    streams,
    submissions,
    bundles,
    jobs,
    overview,
    cancellations,
    terminals,
    retries,
    enrolment,
    nodes,
    injections,
    faults,
    tenants,
    usage,
    shares,
    secrets,
    users,
    webhooks,
    pools,
    audit,
    identity,
    dead_letters,
    endpoints,
    llm,
    llm_usage,
    joining,
)


def build(gateway: Gateway) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    app = FastAPI(title="Berth", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.gateway = gateway
    problem.install_problem_handlers(app, gateway.denials.count)
    openapi.install_openapi(app)
    for routes in ROUTES:
        app.include_router(routes.router)
    app.include_router(enrolment.enrolments)
    return app
