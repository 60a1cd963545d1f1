"""Errors in the form of the OpenAI API, as vLLM answers them."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


@dataclass
class EngineError(Exception):
    """A request is refused with an HTTP status; `param` is the field at fault."""

    status: int
    message: str
    code: str | int | None = None
    param: str | None = None

    @property
    def body(self) -> dict[str, object]:
        kind = TYPES.get(
            self.status, "invalid_request_error" if self.status < 500 else "server_error"
        )
        code = self.status if self.code is None else self.code
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": code}}

    def response(self) -> web.Response:
        return web.json_response(self.body, status=self.status)
