"""Writes the response to a completion: as one JSON body, or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aiohttp import web

from services.throttle.errors import unavailable_error
from services.throttle.followers import RequestProgress
from services.throttle.openai import CompletionRequest, CompletionResponse


async def complete_response(
    response: CompletionResponse, progress: RequestProgress, headers: Mapping[str, str]
) -> web.Response:
    while not progress.ended:
        await progress.until_beyond(progress.made_tokens)
    if progress.lost:
        raise unavailable_error()
    return web.json_response(response.complete(progress.made_tokens), headers=headers)


async def stream_response(
    request: web.Request,
    completion: CompletionRequest,
    response: CompletionResponse,
    progress: RequestProgress,
    headers: Mapping[str, str],
) -> web.StreamResponse:
    """Stream the tokens as they are made; a client that hangs up is still served and charged."""
    stream = web.StreamResponse(
        headers={**headers, "content-type": "text/event-stream", "cache-control": "no-cache"}
    )
    try:
        await stream.prepare(request)
        sent_tokens = 0
        while not progress.ended or progress.made_tokens > sent_tokens:
            await progress.until_beyond(sent_tokens)
            if progress.made_tokens > sent_tokens:
                await _send(stream, response.chunk(sent_tokens, progress.made_tokens))
                sent_tokens = progress.made_tokens
        if progress.done:
            await _finish(stream, completion, response, sent_tokens)
    except ConnectionResetError:
        return stream
    return stream


async def _finish(
    stream: web.StreamResponse,
    completion: CompletionRequest,
    response: CompletionResponse,
    tokens: int,
) -> None:
    """Write the end of the stream; one without `[DONE]` was cut because its lane was lost."""
    await _send(stream, response.last_chunk(tokens))
    if completion.includes_usage:
        await _send(stream, response.usage_chunk(tokens))
    await stream.write(b"data: [DONE]\n\n")
    await stream.write_eof()


async def _send(stream: web.StreamResponse, chunk: Mapping[str, object]) -> None:
    await stream.write(b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n")
