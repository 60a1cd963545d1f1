"""The routes of the OpenAI API."""

from __future__ import annotations

import asyncio
import logging
import time

from aiohttp import web

from services.throttle.proxy.authentication import Authenticator, no_model, visible_models
from services.throttle.proxy.connection import error_response, expect
from services.throttle.proxy.serve import RequestServer
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.request import ROUTES, Route
from shared.telemetry.spans import Spans

log = logging.getLogger(__name__)

MODELS = "/v1/models"


class OpenAiProxy:
    """The handler of all requests; the fold of `access` is polled elsewhere.

    It is one function of aiohttp's server, as the router of its applications costs more than the
    choice of a route by its path.
    """

    def __init__(self, authenticator: Authenticator, server: RequestServer, spans: Spans) -> None:
        self._authenticator = authenticator
        self._access = authenticator.access
        self._server = server
        self._spans = spans
        self._routes: dict[str, Route] = {f"/v1/{route}": route for route in ROUTES}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request of any path and method."""
        if "expect" in request.headers and (refusal := await expect(request)) is not None:
            return refusal
        route = self._routes.get(request.path)
        if route is not None and request.method == "POST":
            return await self._respond(request, route)
        if request.method in ("GET", "HEAD"):
            if request.path == MODELS:
                return await self._list_models(request)
            list_path, _, model = request.path.partition(f"{MODELS}/")
            if model and not list_path:
                return await self._show_model(request, model)
        return unknown_route(request)

    async def _respond(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        parent = request.headers.get("traceparent", "")
        with self._spans.span("llm", parent, {"http.request.method": "POST"}) as span:
            span.set("http.route", f"/v1/{route}")
            try:
                response = await self._server.serve(request, route, span)
            except ErrorAnswer as error:
                response = error_response(error)
            except (ConnectionError, web.HTTPException):
                raise
            except Exception as error:
                if request.writer.output_size > 0:
                    raise
                log.exception("request failed")
                response = error_response(internal_error(error))
            except asyncio.CancelledError:
                span.set("http.response.status_code", 499)
                raise
            span.set("http.response.status_code", response.status)
            return response

    async def _list_models(self, request: web.BaseRequest) -> web.Response:
        try:
            bearer = await self._authenticator.authenticate(request)
        except ErrorAnswer as error:
            return error_response(error)
        models = [model_object(name) for name in visible_models(self._access, bearer)]
        return web.json_response({"object": "list", "data": models})

    async def _show_model(self, request: web.BaseRequest, name: str) -> web.Response:
        try:
            bearer = await self._authenticator.authenticate(request)
            if name not in visible_models(self._access, bearer):
                raise no_model(name)
        except ErrorAnswer as error:
            return error_response(error)
        return web.json_response(model_object(name))


def unknown_route(request: web.BaseRequest) -> web.Response:
    """Answer any other path or method, as OpenAI clients read it."""
    methods = allowed_methods(request.path)
    if methods:
        text = f"method: {request.method} is not one of {request.path}; {methods} is required"
        return error_response(refuse("method_not_allowed", text, headers={"allow": methods}))
    routes = ", ".join(f"/v1/{route}" for route in (*ROUTES, "models"))
    text = f"path: {request.path[:128]!r}: no such route; {routes} are served"
    return error_response(refuse("unknown_url", text))


def allowed_methods(path: str) -> str:
    """Return the method of a route; empty for a path that is none."""
    if path.removeprefix("/v1/") in ROUTES and path.startswith("/v1/"):
        return "POST"
    return "GET" if path == MODELS or path.startswith(f"{MODELS}/") else ""


def internal_error(error: Exception) -> ErrorAnswer:
    text = f"service: failed on the request ({type(error).__name__}); its log has the cause"
    return refuse("internal_error", text)


def model_object(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": int(time.time()), "owned_by": "berth"}
