"""A bare pass-through of aiohttp, the floor of the comparison: it checks one key and relays.

With a broker it appends a record of each request to a log before the engine gets it, which is the
floor of a proxy that reserves durably.
"""

from __future__ import annotations

import argparse
import hmac
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from benchmarks.parts.proxy.group_appends import GroupAppends
from shared.bus.logs.kafka import KafkaLog
from shared.ledger.partition import TP
from shared.process.connection import Connection

UPSTREAM = web.AppKey("upstream", aiohttp.ClientSession)
KEY = web.AppKey("key", str)
APPENDS = web.AppKey("appends", GroupAppends)
PASSED = "content-type"
UNUSED = TP("placement", 0)
"""The ledger of a service that does not run here: it is as durable as that of the throttle."""


async def relay(request: web.Request) -> web.StreamResponse:
    """Send the request on, and pass each chunk of the answer as it comes."""
    header = request.headers.get("authorization", "")
    if not hmac.compare_digest(header.encode(), f"Bearer {request.app[KEY]}".encode()):
        return web.json_response({"error": {"message": "invalid API key"}}, status=401)
    headers = {PASSED: request.headers.get(PASSED, "application/json")}
    data = await request.read()
    if (appends := request.app.get(APPENDS)) is not None:
        await appends.add({"path": request.path, "bytes": len(data)})
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


def bare_app(upstream: str, key: str, broker: Connection | None = None) -> web.Application:
    """Return the application; with a broker it appends before it sends."""
    app = web.Application()
    app[KEY] = key

    async def connected(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(upstream, connector=connector) as client:
            app[UPSTREAM] = client
            yield

    async def appending(app: web.Application) -> AsyncIterator[None]:
        assert broker is not None
        log = KafkaLog(broker, client="bare")
        await log.start()
        app[APPENDS] = GroupAppends(log, UNUSED)
        yield
        await log.stop()

    app.cleanup_ctx.append(connected)
    if broker is not None:
        app.cleanup_ctx.append(appending)
    app.router.add_post("/{path:.*}", relay)
    return app


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("upstream")
    parser.add_argument("port", type=int)
    parser.add_argument("key")
    parser.add_argument("--broker", default="", help="append to it before each request")
    parser.add_argument("--idempotent", action="store_true")
    options = parser.parse_args()
    broker = Connection(options.broker, options.idempotent) if options.broker else None
    app = bare_app(options.upstream, options.key, broker)
    web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
