"""The HTTP server of `berth engine`: the OpenAI API and vLLM's pages for operators."""

from __future__ import annotations

import asyncio
import hmac
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from simulator.emulator.answers import FINGERPRINT, embedding
from simulator.emulator.batch import EmulatedBatch, EngineWork
from simulator.emulator.bodies import (
    EmbeddingsBody,
    RetrainingBody,
    TokenizeBody,
    checked_prompts,
    decode,
)
from simulator.emulator.completions import BODIES, Kind, output_limit, respond
from simulator.emulator.errors import EngineError
from simulator.emulator.faults import HEADER, Fault, InvalidFaults
from simulator.emulator.figures import CONTENT_TYPE, EngineFigures, exposition
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.prompts import count_tokens, message_prompt, text_prompt, token_ids
from simulator.llm.adapter_retraining import AdapterRetraining

GUARDED = ("/v1/", "/retraining")
MAX_BODY_BYTES = 16 * 1024 * 1024
SHUTDOWN_S = 0.5
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class EngineEmulator:
    """All models of one server; each has a batch of its own, adapters share the first one's."""

    def __init__(self, options: EmulatorOptions) -> None:
        self._options = options
        self._retraining = AdapterRetraining(options.retrained) if options.retrained else None
        self._batches: dict[str, EmulatedBatch] = {
            model: EmulatedBatch(
                EngineFigures(model, index),
                options.limits,
                options.costs,
                speed=options.speed,
                queue_limit=options.queue_limit,
                prefix_cache=options.prefix_cache,
                retraining=None if index else self._retraining,
            )
            for index, model in enumerate(options.models)
        }
        self._by_name: Mapping[str, EmulatedBatch] = {
            **self._batches,
            **dict.fromkeys(options.adapters, self._batches[options.models[0]]),
        }
        self._created = int(time.time())
        self._keys = [key.encode() for key in options.keys]
        self._chance = random.Random(options.seed)
        self._in_flight = 0
        self._steps: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve while the block runs; yields the port. Raises OSError if it cannot be had."""
        runner = web.AppRunner(
            self.app(), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_S
        )
        await runner.setup()
        self._steps = [asyncio.create_task(batch.run()) for batch in self._batches.values()]
        try:
            await web.TCPSite(runner, host, port, backlog=2048).start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()
            for task in self._steps:
                task.cancel()
            await asyncio.wait(self._steps)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        app.on_response_prepare.append(_sign)
        post, get = app.router.add_post, app.router.add_get
        post("/v1/chat/completions", self._completion("chat"))
        post("/v1/completions", self._completion("text"))
        post("/v1/responses", self._completion("responses"))
        post("/v1/embeddings", self._embed)
        post("/tokenize", self._tokenize)
        get("/v1/models", self._list_models)
        get("/v1/models/{name:.+}", self._show_model)
        get("/metrics", self._metrics)
        get("/health", self._health)
        get("/load", self._load)
        get("/retraining", self._show_retraining)
        app.router.add_put("/retraining", self._set_retraining)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer errors as JSON, check the key of `/v1` and count what is in flight."""
        try:
            if request.path.startswith(GUARDED):
                self._authenticate(request)
            return await handler(request)
        except EngineError as error:
            return error.response()
        except web.HTTPRequestEntityTooLarge:
            text = f"body: too large; at most {MAX_BODY_BYTES} bytes are allowed"
            return EngineError(413, text).response()
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return EngineError(
                error.status, f"{request.method} {request.path}: {error.reason}"
            ).response()

    def _authenticate(self, request: web.Request) -> None:
        if not self._keys:
            return
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        sent = key.strip().encode("utf-8", "surrogateescape")
        matches = [hmac.compare_digest(sent, known) for known in self._keys]
        if scheme.lower() != "bearer" or not any(matches):
            raise EngineError(401, "the API key is missing or unknown", code="invalid_api_key")

    def _completion(self, kind: Kind) -> Handler:
        async def complete(request: web.Request) -> web.StreamResponse:
            body = decode(BODIES[kind], await request.read())
            batch = self._batch_of(body.model)
            self._in_flight += 1
            try:
                fault = await self._begin_fault(request)
                return await respond(request, kind, body, batch, self._options.seed, fault)
            finally:
                self._in_flight -= 1

        return complete

    async def _begin_fault(self, request: web.Request) -> Fault | None:
        """Return the fault of a request; those that leave no answer happen now."""
        try:
            fault = self._options.faults.draw(self._chance, request.headers.get(HEADER))
        except InvalidFaults as error:
            raise EngineError(400, f"{HEADER}: {error}", param=HEADER) from None
        if fault == "error":
            raise EngineError(500, "an error that this engine was started to answer")
        if fault == "hang":
            await asyncio.Event().wait()
        return fault

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        body = decode(EmbeddingsBody, await request.read())
        batch = self._batch_of(body.model)
        prompts = checked_prompts("input", body.input)
        await self._begin_fault(request)
        work = EngineWork(generates=False)
        for prompt in prompts:
            output_limit(batch.context, "input", count_tokens(prompt), 1)
            # An embedding is made by the step that reads its prompt.
            work.add(prompt, limit=1, length=1)
        with batch.served(work):
            await work.until_ended()
        tokens = sum(count_tokens(prompt) for prompt in prompts)
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": embedding(prompt, body.dimensions, body.encoding_format),
            }
            for index, prompt in enumerate(prompts)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _json({"object": "list", "data": data, "model": body.model, "usage": usage})

    async def _tokenize(self, request: web.Request) -> web.StreamResponse:
        body = decode(TokenizeBody, await request.read())
        batch = self._batch_of(body.model or self._options.models[0])
        if (body.prompt is None) == (body.messages is None):
            raise EngineError(400, "prompt: exactly one of prompt and messages is required")
        if body.messages is not None:
            prompt = message_prompt(message.content for message in body.messages)
        else:
            prompt = text_prompt(body.prompt or "")
        ids = token_ids(prompt)
        return _json({"count": len(ids), "max_model_len": batch.context, "tokens": ids})

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        models = [self._model(name) for name in self._by_name]
        return _json({"object": "list", "data": models})

    async def _show_model(self, request: web.Request) -> web.StreamResponse:
        return _json(self._model(request.match_info["name"]))

    def _model(self, name: str) -> dict[str, object]:
        parent = self._options.models[0] if name in self._options.adapters else None
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": FINGERPRINT,
            "root": parent or name,
            "parent": parent,
            "max_model_len": self._batch_of(name).context,
        }

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        batches = self._batches.values()
        text = exposition((batch.figures, batch.gauges) for batch in batches)
        return web.Response(body=text.encode(), headers={"content-type": CONTENT_TYPE})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        steps_end = any(task.done() for task in self._steps)
        return web.Response(status=503 if steps_end else 200)

    async def _load(self, request: web.Request) -> web.StreamResponse:
        return _json({"server_load": self._in_flight})

    async def _show_retraining(self, request: web.Request) -> web.StreamResponse:
        return _json(self._retrains().document(self._now_s(), self._options.speed))

    async def _set_retraining(self, request: web.Request) -> web.StreamResponse:
        """Take the share of the free time that retraining may have, and the deadlines."""
        retraining = self._retrains()
        body = decode(RetrainingBody, await request.read())
        speed = self._options.speed
        deadlines_s = (body.ttft_s * speed, body.tpot_s * speed, body.freshness_s * speed)
        retraining.set_share(body.share, *deadlines_s, self._now_s())
        return _json(retraining.document(self._now_s(), speed))

    def _retrains(self) -> AdapterRetraining:
        if self._retraining is None:
            raise EngineError(404, "the engine retrains no adapter: start it with --retrain")
        return self._retraining

    def _now_s(self) -> float:
        """Return the time by which adapters age, in s of the model."""
        return asyncio.get_running_loop().time() * self._options.speed

    def _batch_of(self, model: str) -> EmulatedBatch:
        batch = self._by_name.get(model)
        if batch is None:
            text = f"The model `{model[:200]}` does not exist."
            raise EngineError(404, text, code="model_not_found", param="model")
        return batch


def _json(document: Mapping[str, object]) -> web.Response:
    return web.json_response({**document, "system_fingerprint": FINGERPRINT})


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    """State in every answer that the engine is an emulator."""
    response.headers["server"] = FINGERPRINT
