"""A bare pass-through of aiohttp, the floor of the comparison: it checks one key and relays."""

from __future__ import annotations

import argparse
import hmac
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

UPSTREAM = web.AppKey("upstream", aiohttp.ClientSession)
KEY = web.AppKey("key", str)
PASSED = "content-type"


async def relay(request: web.Request) -> web.StreamResponse:
    """Send the request on, and pass each chunk of the answer as it comes."""
    header = request.headers.get("authorization", "")
    if not hmac.compare_digest(header.encode(), f"Bearer {request.app[KEY]}".encode()):
        return web.json_response({"error": {"message": "invalid API key"}}, status=401)
    headers = {PASSED: request.headers.get(PASSED, "application/json")}
    data = await request.read()
    async with request.app[UPSTREAM].post(request.path, data=data, headers=headers) as answer:
        passed = {PASSED: answer.headers[PASSED]}
        if not answer.headers[PASSED].startswith("text/event-stream"):
            return web.Response(body=await answer.read(), status=answer.status, headers=passed)
        response = web.StreamResponse(status=answer.status, headers=passed)
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


def bare_app(upstream: str, key: str) -> web.Application:
    app = web.Application()
    app[KEY] = key

    async def connected(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(upstream, connector=connector) as client:
            app[UPSTREAM] = client
            yield

    app.cleanup_ctx.append(connected)
    app.router.add_post("/{path:.*}", relay)
    return app


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("upstream")
    parser.add_argument("port", type=int)
    parser.add_argument("key")
    options = parser.parse_args()
    app = bare_app(options.upstream, options.key)
    web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
