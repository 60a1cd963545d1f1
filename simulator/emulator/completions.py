"""The requests that an emulated engine makes tokens for: checked, served and answered."""

from __future__ import annotations

import asyncio
import time
from typing import Literal
from uuid import uuid4

from aiohttp import web

from simulator.emulator.answers import AnswerForm, AnswerHead, CompletionForm, Usage, encode
from simulator.emulator.batch import EmulatedBatch, EngineWork
from simulator.emulator.bodies import (
    DEFAULT_OUTPUT_TOKENS,
    ChatBody,
    CompletionBody,
    ResponsesBody,
    TextBody,
)
from simulator.emulator.errors import EngineError
from simulator.emulator.faults import Fault
from simulator.emulator.prompts import answer_tokens, count_tokens
from simulator.emulator.responses import ResponsesForm
from simulator.emulator.streaming import SLOW_S, StreamWriter, reset

Kind = Literal["chat", "text", "responses"]
BODIES: dict[Kind, type[CompletionBody]] = {
    "chat": ChatBody,
    "text": TextBody,
    "responses": ResponsesBody,
}
ID_PREFIXES: dict[Kind, str] = {"chat": "chatcmpl", "text": "cmpl", "responses": "resp"}
MOST_ANSWERS = 4096
NOT_JSON = b'{"choices": [{'


def output_limit(context: int, field: str, prompt_tokens: int, limit: int | None) -> int:
    """Return the most tokens of an answer; `limit` is the request's own.

    Raises EngineError where prompt and answer can never fit `context` tokens.
    """
    room = context - prompt_tokens
    if room < (limit or 1):
        raise EngineError(
            400,
            f"This model's maximum context length is {context} tokens. The request has "
            f"{prompt_tokens} prompt tokens and may make {limit or 1}.",
            code="context_length_exceeded",
            param=field,
        )
    return limit or min(DEFAULT_OUTPUT_TOKENS, room)


def work_of(context: int, body: CompletionBody, seed: int) -> EngineWork:
    """Return the sequences that the request needs, `n` per prompt. Raises EngineError."""
    if body.limit is not None and body.min_tokens > body.limit:
        text = f"min_tokens: {body.min_tokens} is above the limit of {body.limit} tokens"
        raise EngineError(400, text, param="min_tokens")
    prompts = body.prompts
    if len(prompts) * body.choices > MOST_ANSWERS:
        text = (
            f"n: {body.choices} answers to each of {len(prompts)} prompts; at most {MOST_ANSWERS}"
        )
        raise EngineError(400, f"{text} answers are allowed", param="n")
    work = EngineWork(stream=bool(body.stream))
    for prompt in prompts:
        limit = output_limit(context, body.field, count_tokens(prompt), body.limit)
        least = limit if body.ignore_eos else min(body.min_tokens, limit)
        for index in range(body.choices):
            length = answer_tokens(seed, body.seed, prompt, index, (least, limit))
            work.add(prompt, limit, length)
    return work


async def respond(
    request: web.Request,
    kind: Kind,
    body: CompletionBody,
    batch: EmulatedBatch,
    seed: int,
    fault: Fault | None,
) -> web.StreamResponse:
    """Serve one request to its end. Raises EngineError before anything is sent."""
    work = work_of(batch.context, body, seed)
    form = _form_of(kind, body)
    with batch.served(work):
        if body.stream:
            return await StreamWriter(request, work, form, fault).write(body.choices)
        await work.until_ended()
        return await _document(request, work, form, body.choices, fault)


async def _document(
    request: web.Request, work: EngineWork, form: AnswerForm, choices: int, fault: Fault | None
) -> web.Response:
    if fault == "slow":
        await asyncio.sleep(SLOW_S)
    if fault == "reset":
        reset(request)
    usage = Usage.of(work, choices, wrong=fault == "wrong-usage")
    data = encode(form.document(work.sequences, usage))
    if fault == "malformed":
        data = NOT_JSON
    return web.Response(body=data, content_type="application/json")


def _form_of(kind: Kind, body: CompletionBody) -> AnswerForm:
    head = AnswerHead(f"{ID_PREFIXES[kind]}-{uuid4().hex}", int(time.time()), body.model)
    if kind == "responses":
        return ResponsesForm(head)
    return CompletionForm(head, chat=kind == "chat", includes_usage=body.includes_usage)
