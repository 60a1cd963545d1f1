"""Inputs that a fuzzer starts with: bytes of every bug, examples of contracts, hostile bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SEEDS = Path(__file__).parent / "seeds"
FIXTURES = Path(__file__).parents[1] / "contracts" / "fixtures"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPEC = {"name": "job", "gang": {"workers": 2, "gpus_per_worker": 0.5}}

HOSTILE = {
    "empty": b"",
    "nul": b"\x00",
    "bom": b'\xef\xbb\xbf{"a": 1}',
    "utf16": '{"a": 1}'.encode("utf-16"),
    "lone_surrogate": b'{"name": "\\ud800", "spec": {"name": "\\udfff"}}',
    "raw_surrogate": b'{"name": "\xed\xa0\x80"}',
    "bad_utf8": b'{"name": "\xff\xfe"}',
    "nul_in_text": b'{"name": "a\\u0000b", "\\u0000": 1}',
    "beyond_int64": b'{"array_size": 9223372036854775808, "seq": 18446744073709551616}',
    "not_a_number": b'{"a": NaN, "b": Infinity, "c": -Infinity}',
    "infinite": b'{"a": 1e999, "b": -1e999}',
    "many_digits": b'{"a": ' + b"9" * 5000 + b"}",
    "twice": b'{"name": "a", "name": "b", "spec": {}, "spec": {"name": "c"}}',
    "deep_list": b"[" * 100_000,
    "deep_object": b'{"a":' * 100_000,
    "deep_and_whole": b'{"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "long_key": b'{"' + b"k" * (1 << 20) + b'": 1}',
    "trailing": b'{"a": 1} {"b": 2}',
    "comment": b'{"a": 1 /* no */}',
    "negative_zero": b'{"a": -0.0, "b": 1E-400}',
}


def corpus(target: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of everything that this target begins with."""
    for path in sorted((SEEDS / target).glob("*")):
        yield f"seed {path.name}", path.read_bytes()
    for name, value in examples(target):
        yield name, value
    for name, value in HOSTILE.items():
        yield f"hostile {name}", value


def examples(target: str) -> Iterator[tuple[str, bytes]]:
    match target:
        case "cloudevent" | "soft":
            yield from (
                (name, envelope(name.removesuffix(".json"), data)) for name, data in fixtures()
            )
            hostile = [(f"within {name}", value) for name, value in HOSTILE.items()]
            yield from ((name, envelope("job.submit.v1", value)) for name, value in hostile)
            yield from _envelopes()
        case "submission":
            yield "submit", envelope("job.submit.v1", dumped({"spec": SPEC}))
            yield "flat", envelope("job.submit", dumped({**SPEC, "pool": "side"}))
            yield "cancel", envelope("job.cancel.v1", dumped({"job_id": "a", "reason": "b"}))
        case "body":
            yield "spec", dumped({"spec": SPEC, "idempotency_key": "k"})
            yield "flat", dumped({**SPEC, "array_size": 3, "tenant": "ada"})
            yield "cancel", dumped({"job_id": "a", "pool": "main"})
        case "report":
            yield from ((name, data) for name, data in fixtures() if "report" in name)
        case "llm-stream":
            yield "chunk", b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'
            yield "named", b"\xef\xbb\xbfevent: error\r\ndata: {}\r\n\r\n: comment\r\r"
        case "llm-body":
            yield "text", dumped({"model": "llama", "prompt": "hello", "stream": True})
            content = [{"type": "text", "text": "hi"}]
            messages = [{"role": "user", "content": content}, {"role": "user", "content": None}]
            yield "chat", dumped({"model": "llama", "messages": messages, "max_tokens": 7})
        case _:
            yield from _plain(target)


def _plain(target: str) -> Iterator[tuple[str, bytes]]:
    match target:
        case "record":
            event = {"type": "job.placed.v1", "subject": "j", "data": {}, "cause": "c"}
            plain = {"id": "a", "seq": 1, "prev": "", "w": "w", "at": 1, "ev": [event]}
            yield "record", dumped({**plain, "in": {"commands-0": 4, "access-0": [1, 1, "x"]}})
            yield "events", dumped([event])
        case "traceparent":
            yield "traceparent", TRACEPARENT.encode()
            yield "later version", (TRACEPARENT.replace("00-", "cc-", 1) + "-more").encode()
        case "api-key":
            yield "right", b"k.1.secret"
            yield "wrong", b"k.1.secreT"
        case "token":
            yield "header", dumped({"alg": "ES256", "kid": "e1", "typ": "JWT"})
            yield "unsigned", dumped({"alg": "none", "kid": "e1"})
            yield "a key of its own", dumped({"alg": "ES256", "kid": "e1", "jku": "https://x"})
            yield "token", b"eyJhbGciOiJFUzI1NiIsImtpZCI6ImUxIn0.e30.AAAA"
            yield "role", dumped({"role": ["op", "sub"]})
            yield "claims", dumped({"exp": 1e308, "sub": "x", "aud": ["berth"], "nbf": "1"})
            yield "endless exp", b'{"role": "op"}, "exp": 1e999, "x": 1'
            yield "endless nbf", b'{"role": "op"}, "nbf": Infinity'
            yield "surrogate", b'{"alg": "ES256", "kid": "e1", "\\ud800": 1}'
        case "last-event-id":
            yield "place", b"1.20.300.9223372036854775807"
        case "otlp":
            yield from _spans()


def _spans() -> Iterator[tuple[str, bytes]]:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "gateway"
    span = resource.scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes(range(1, 17)), bytes(range(1, 9))
    span.attributes.add(key="job.id").value.string_value = "j"
    span.attributes.add(key="n").value.double_value = float("nan")
    span.links.add().trace_id = bytes(16)
    yield "protobuf", request.SerializeToString()
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"}
    job = {"key": "job.id", "value": {"stringValue": "j"}}
    spans = [{**ids, "name": "submit", "startTimeUnixNano": "1", "attributes": [job]}]
    plain = dumped({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    yield "json", plain
    yield "gzip", gzip.compress(plain)
    yield "bomb", gzip.compress(b"[" * (8 << 20))


def _envelopes() -> Iterator[tuple[str, bytes]]:
    """Odd envelopes around a fair message."""
    fair = dumped({"job_id": "j", "tenant": "ada", "reason": ""})
    odd: dict[str, dict[str, Any]] = {
        "time long ago": {"time": "0001-01-01T00:00:00+23:59"},
        "time far away": {"time": "9999-12-31T23:59:59.999999-23:59"},
        "huge id": {"id": "x" * 500_000},
        "another tenant": {"tenant": "eve"},
        "unknown version": {"type": "job.cancel.v99"},
        "two sources": {"source": ""},
        "number as id": {"id": 2**63},
    }
    for name, changed in odd.items():
        yield name, envelope("job.cancel.v1", fair, **changed)


def envelope(type_: str, data: bytes, **changed: object) -> bytes:
    """A CloudEvent with these data as they are, be they JSON or not."""
    plain = {"specversion": "1.0", "id": "id-1", "source": "/test", "type": type_}
    head = json.dumps({**plain, **changed}).encode()
    return head[:-1] + b', "data": ' + data + b"}"


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


@cache
def fixtures() -> tuple[tuple[str, bytes], ...]:
    """The example of every contract, by its wire name."""
    paths = sorted(FIXTURES.rglob("*.json"))
    return tuple((path.name, dumped(json.loads(path.read_bytes()))) for path in paths)
