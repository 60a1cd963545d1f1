"""The body of a request: what the proxy reads of it is checked, all else passes byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Raw

from services.throttle.relay.large_json import LARGE_BYTES, BadJson, LargeJson, value_bytes
from services.throttle.relay.prompt_size import count_prompts

Route = Literal["chat/completions", "completions", "embeddings", "responses"]
ROUTES: tuple[Route, ...] = get_args(Route)
Fields = Mapping[str, Raw]

MOST_CHOICES = 128
MOST_LIMIT = 10_000_000
MOST_PROMPTS = 4096
MOST_FIELDS = 1000
MOST_FIELD_BYTES = 64 * 1024
"""Of a field that the proxy decodes: the event loop must not wait for it."""

LIMIT_FIELDS: Mapping[Route, tuple[str, ...]] = {
    "chat/completions": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "embeddings": (),
    "responses": ("max_output_tokens",),
}
"""The fields by which engines limit the tokens of an answer of the route."""
LIMIT_NAMES = ("max_completion_tokens", "max_tokens", "max_output_tokens", "n_predict")
"""Fields that limit an answer in some engine, on any route: llama.cpp prefers `n_predict`, and
reads `max_completion_tokens` everywhere."""
ANSWER_FIELDS = ("n", "n_cmpl", "best_of")
"""Fields with a number of answers in some engine; `n_cmpl` is llama.cpp's."""
PROMPT_FIELDS: Mapping[Route, tuple[str, ...]] = {
    "chat/completions": ("messages",),
    "completions": ("prompt", "prompt_embeds"),
    "embeddings": ("input", "messages"),
    "responses": ("input", "prompt", "previous_response_id"),
}
"""The fields of which one has to hold the prompt."""
KINDS = {b"{": "object", b"[": "array", b'"': "string", b"n": "null", b"t": "true", b"f": "false"}
TRUE = Raw(b"true")

_TOP = msgspec.json.Decoder(dict[str, Raw])
_OPTIONS = msgspec.json.Decoder(dict[str, Raw] | None)
_COUNT = f"an integer from 1 to {MOST_LIMIT} is required"
_CHOICES = f"an integer from 1 to {MOST_CHOICES} is required"
_BOOLEAN = "true, false or null is required"


def _rule(kind: Any, text: str) -> tuple[msgspec.json.Decoder[Any], str]:
    return msgspec.json.Decoder(kind), text


_Count = Annotated[int, Meta(ge=1, le=MOST_LIMIT)]
_Choices = Annotated[int, Meta(ge=1, le=MOST_CHOICES)]
RULES: Mapping[str, tuple[msgspec.json.Decoder[Any], str]] = {
    "model": _rule(
        Annotated[str, Meta(min_length=1, max_length=128)],
        "a string of 1 to 128 characters is required",
    ),
    "stream": _rule(bool | None, _BOOLEAN),
    "background": _rule(bool | None, _BOOLEAN),
    "use_beam_search": _rule(bool | None, _BOOLEAN),
    "include_usage": _rule(bool | None, _BOOLEAN),
    "stream_options": (_OPTIONS, "an object or null is required"),
    "max_tokens": _rule(_Count | None, _COUNT),
    "max_completion_tokens": _rule(_Count | None, _COUNT),
    "max_output_tokens": _rule(_Count | None, _COUNT),
    "n_predict": _rule(_Count | None, _COUNT),
    "n": _rule(_Choices | None, _CHOICES),
    "n_cmpl": _rule(_Choices | None, _CHOICES),
    "best_of": _rule(_Choices | None, _CHOICES),
    "user": _rule(
        Annotated[str, Meta(max_length=256, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")] | None,
        "a string of at most 256 characters without control characters is required",
    ),
}
"""How the fields that the proxy reads are decoded, and the rule that each obeys."""


class InvalidRequest(ValueError):
    """The body is invalid; the text names field, kind of value and rule, never the value."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


class RequestBody(msgspec.Struct, frozen=True):
    """A request as it was sent, and what the proxy needs to know of it."""

    route: Route
    fields: Fields
    model: str
    stream: bool
    """Whether the client reads a stream."""
    shows_usage: bool
    """Whether a stream shows the client the chunk with the usage."""
    limit: int | None
    """The most tokens of one answer; None: the request names no limit."""
    answers: int
    """How many answers the engine generates."""
    user: str

    @classmethod
    def decode(cls, route: Route, body: bytes) -> RequestBody:
        """Decode a body; one above `LARGE_BYTES` in a thread: see there. Raises InvalidRequest."""
        fields = _decode_object(body)
        _check_prompt(route, fields)
        if _read(fields, "background"):
            raise InvalidRequest("background", "true; answers are generated while clients wait")
        return cls(
            route=route,
            fields=fields,
            model=_model(fields),
            stream=route != "embeddings" and bool(_read(fields, "stream")),
            shows_usage=route == "responses" or bool(_read(_options(fields), "include_usage")),
            limit=_limit(route, fields),
            answers=_answers(route, fields),
            user=_read(fields, "user") or "",
        )

    @property
    def streamable(self) -> bool:
        """Return whether engines can stream the answer; what the client streams itself is its
        choice.
        """
        if self.route == "embeddings":
            return False
        searches = _read(self.fields, "use_beam_search") or (_read(self.fields, "best_of") or 1) > (
            _read(self.fields, "n") or 1
        )
        return self.stream or not (searches or "audio" in self.fields)

    def with_stream(self) -> Fields:
        """Return the fields for the engine: streamed if it can be, with the usage at the end."""
        if not self.streamable:
            return self.fields
        if self.route == "responses":
            return {**self.fields, "stream": TRUE}
        options = {**_options(self.fields), "include_usage": TRUE}
        return {**self.fields, "stream": TRUE, "stream_options": Raw(msgspec.json.encode(options))}

    @property
    def sends_limit(self) -> bool:
        """Return whether the limit is in a field that engines read on this route."""
        fields = self.fields
        names = (name for name in LIMIT_FIELDS[self.route] if name in fields)
        return any(value_kind(fields[name]) != "null" for name in names)

    def output_limit(self, default: int) -> int:
        """Return the most output tokens of all answers; `default` is the endpoint's per answer."""
        if self.route == "embeddings":
            return 0
        return (self.limit or default) * self.answers


def value_kind(raw: Raw) -> str:
    """Return the JSON type of a value."""
    return KINDS.get(bytes(memoryview(raw)[:1]), "number")


def _decode_object(body: bytes) -> dict[str, Raw]:
    if len(body) > LARGE_BYTES:
        try:
            return LargeJson(body).fields(MOST_FIELDS)
        except BadJson as error:
            raise InvalidRequest("body", str(error)) from None
    try:
        fields = _TOP.decode(body)
    except msgspec.ValidationError:
        raise InvalidRequest("body", "not an object; a JSON object is required") from None
    except RecursionError:
        raise InvalidRequest("body", "nested too deeply; at most 900 levels are allowed") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidRequest("body", "not valid JSON; a JSON object is required") from None
    if len(fields) > MOST_FIELDS:
        text = f"object of {len(fields)} fields; at most {MOST_FIELDS} are allowed"
        raise InvalidRequest("body", text)
    return fields


def _read(fields: Fields, name: str) -> Any:
    """Return a field that is checked by its rule; None if it is absent. Raises InvalidRequest."""
    raw = fields.get(name)
    if raw is None:
        return None
    decoder, rule = RULES[name]
    if memoryview(raw).nbytes > MOST_FIELD_BYTES:
        raise InvalidRequest(name, f"longer than {MOST_FIELD_BYTES} bytes; {rule}")
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest(name, f"invalid {value_kind(raw)}; {rule}") from None


def _model(fields: Fields) -> str:
    if "model" not in fields:
        raise InvalidRequest("model", f"missing; {RULES['model'][1]}")
    model: str = _read(fields, "model")
    return model


def _options(fields: Fields) -> Fields:
    options: Fields | None = _read(fields, "stream_options")
    return options or {}


def _limit(route: Route, fields: Fields) -> int | None:
    """Return the largest limit that any engine may read; None if none is named."""
    if route == "embeddings":
        return None
    return (
        max((_read(fields, name) or 0 for name in LIMIT_NAMES if name in fields), default=0) or None
    )


def _check_prompt(route: Route, fields: Fields) -> None:
    names = PROMPT_FIELDS[route]
    present = [name for name in names if name in fields and value_kind(fields[name]) != "null"]
    if not present:
        raise InvalidRequest(names[0], "missing; the prompt is required")
    messages = fields.get("messages")
    if messages is None or present[0] != "messages":
        return
    if value_kind(messages) != "array" or not bytes(memoryview(messages)[1:64]).strip(b" \r\n\t]"):
        kind = value_kind(messages)
        fault = "empty" if kind == "array" else f"invalid {kind}"
        raise InvalidRequest("messages", f"{fault}; an array of messages is required")


def _count_prompts(fields: Fields) -> int:
    raw = fields.get("prompt")
    return 1 if raw is None else count_prompts(value_bytes(raw), MOST_PROMPTS)


def _answers(route: Route, fields: Fields) -> int:
    """Return the most answers that any engine may make of the request."""
    if route == "embeddings":
        return 1
    choices = max(_read(fields, name) or 1 for name in ANSWER_FIELDS)
    if route == "completions":
        prompts = _count_prompts(fields)
        if prompts > MOST_PROMPTS:
            text = f"array of more than {MOST_PROMPTS} prompts; at most {MOST_PROMPTS} are allowed"
            raise InvalidRequest("prompt", text)
        choices *= prompts
    return choices
