"""Fields that the proxy reads are checked; all others pass byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.throttle.relay.request import ROUTES, InvalidRequest, RequestBody, Route
from services.throttle.upstreams.body import ENCODER

CHAT: dict[str, Any] = {"model": "org/M", "messages": [{"role": "user", "content": "hi"}]}
TEXT: dict[str, Any] = {"model": "org/M", "prompt": "hi"}
INPUT: dict[str, Any] = {"model": "org/M", "input": "hi"}
BODIES: dict[Route, dict[str, Any]] = {
    "chat/completions": CHAT,
    "completions": TEXT,
    "embeddings": INPUT,
    "responses": INPUT,
}


def decode(route: Route, **fields: Any) -> RequestBody:
    return RequestBody.decode(route, json.dumps({**BODIES[route], **fields}).encode())


def sent(body: RequestBody) -> Any:
    return json.loads(ENCODER.encode(body.with_stream()))


@pytest.mark.parametrize("route", ROUTES)
def test_the_least_body_of_each_route_is_accepted(route: Route) -> None:
    body = decode(route)
    assert (body.model, body.stream, body.limit, body.answers, body.user) == (
        "org/M",
        False,
        None,
        1,
        "",
    )


def test_what_the_proxy_does_not_read_keeps_its_bytes() -> None:
    odd = b'[ 1.50, 1e400 ,"\\u00e9\\/",{"a" : 18446744073709551616} ]'
    raw = b'{"x":%s, "model":"m" , "messages" : [ {"role":"user"} ],"logit_bias":{"5": -1.0}}' % odd
    encoded = ENCODER.encode(RequestBody.decode("chat/completions", raw).with_stream())
    assert odd in encoded
    assert b'"messages":[ {"role":"user"} ]' in encoded
    assert b'"logit_bias":{"5": -1.0}' in encoded
    assert json.loads(encoded)["stream"] is True


@pytest.mark.parametrize("route", ["chat/completions", "completions"])
def test_the_engine_streams_with_usage_and_the_client_gets_what_it_asked_for(route: Route) -> None:
    quiet = decode(route, stream=True, stream_options={"include_usage": False, "x": 1})
    assert not quiet.shows_usage
    assert sent(quiet)["stream_options"] == {"include_usage": True, "x": 1}
    assert sent(decode(route))["stream_options"] == {"include_usage": True}
    assert decode(route, stream_options={"include_usage": True}).shows_usage
    assert not decode(route, stream_options=None, stream=None).shows_usage


def test_responses_have_their_usage_in_their_last_event() -> None:
    body = decode("responses", stream_options={"include_obfuscation": False})
    assert body.shows_usage
    assert sent(body) == {**INPUT, "stream": True, "stream_options": {"include_obfuscation": False}}


def test_embeddings_are_not_streamed() -> None:
    body = decode("embeddings", stream=True)
    assert (body.stream, body.streamable, body.output_limit(100)) == (False, False, 0)
    assert "stream_options" not in sent(body)


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        ("completions", {"best_of": 3, "n": 2}),
        ("chat/completions", {"use_beam_search": True}),
        ("chat/completions", {"audio": {"voice": "x", "format": "mp3"}}),
    ],
)
def test_what_engines_refuse_to_stream_is_sent_as_it_is(
    route: Route, fields: dict[str, Any]
) -> None:
    body = decode(route, **fields)
    assert not body.streamable
    assert "stream" not in sent(body)
    assert decode(route, **fields, stream=True).streamable


@pytest.mark.parametrize(
    ("route", "fields", "limit"),
    [
        ("chat/completions", {}, 1000),
        ("chat/completions", {"max_tokens": 7, "n": 3}, 21),
        ("chat/completions", {"max_tokens": 7, "max_completion_tokens": 5}, 7),
        ("chat/completions", {"max_tokens": 7, "max_completion_tokens": None}, 7),
        ("chat/completions", {"max_output_tokens": 7}, 7),
        ("chat/completions", {"max_tokens": 7, "n_predict": 5000}, 5000),
        ("chat/completions", {"max_tokens": 7, "n": 2, "n_cmpl": 4}, 28),
        ("chat/completions", {"max_tokens": 7, "best_of": 4}, 28),
        ("completions", {"max_tokens": 7, "max_completion_tokens": 30}, 30),
        ("completions", {"max_tokens": 7, "prompt": ["a", "b"], "n": 2}, 28),
        ("completions", {"max_tokens": 7, "best_of": 4}, 28),
        ("completions", {"prompt": [1, 2, 3]}, 1000),
        ("completions", {"prompt": [[1, 2], [3]]}, 2000),
        ("completions", {"prompt": []}, 1000),
        ("responses", {"max_output_tokens": 9}, 9),
        ("responses", {"max_output_tokens": 9, "max_completion_tokens": 40, "n": 2}, 80),
    ],
)
def test_the_limit_is_of_all_answers_together(
    route: Route, fields: dict[str, Any], limit: int
) -> None:
    assert decode(route, **fields).output_limit(1000) == limit


@pytest.mark.parametrize(
    ("route", "fields", "sends"),
    [
        ("chat/completions", {}, False),
        ("chat/completions", {"max_tokens": None, "n_predict": 5}, False),
        ("chat/completions", {"max_completion_tokens": 5}, True),
        ("completions", {"max_completion_tokens": 5}, False),
        ("responses", {"max_tokens": 5}, False),
        ("responses", {"max_output_tokens": 5}, True),
    ],
)
def test_a_limit_counts_for_every_engine_under_a_name_of_its_route(
    route: Route, fields: dict[str, Any], sends: bool
) -> None:
    assert decode(route, **fields).sends_limit is sends


@pytest.mark.parametrize(
    ("route", "fields", "text"),
    [
        ("chat/completions", {"n_predict": -1}, "n_predict: invalid number; an integer from 1"),
        ("chat/completions", {"n_cmpl": 129}, "n_cmpl: invalid number; an integer from 1 to 128"),
        ("chat/completions", {"model": 7}, "model: invalid number; a string of 1 to 128"),
        ("chat/completions", {"model": ""}, "model: invalid string; a string of 1 to 128"),
        ("chat/completions", {"model": None}, "model: invalid null"),
        ("chat/completions", {"stream": "yes"}, "stream: invalid string; true, false or null"),
        ("chat/completions", {"stream_options": []}, "stream_options: invalid array; an object"),
        ("chat/completions", {"stream_options": {"include_usage": 1}}, "include_usage: invalid nu"),
        ("chat/completions", {"max_tokens": -1}, "max_tokens: invalid number; an integer from 1"),
        ("chat/completions", {"max_tokens": 1.5}, "max_tokens: invalid number"),
        ("chat/completions", {"max_tokens": True}, "max_tokens: invalid true"),
        ("chat/completions", {"n": 129}, "n: invalid number; an integer from 1 to 128"),
        ("chat/completions", {"n": 10**30}, "n: invalid number"),
        ("chat/completions", {"user": "u" * 257}, "user: invalid string; a string of at most 256"),
        ("chat/completions", {"messages": []}, "messages: empty; an array of messages"),
        ("chat/completions", {"messages": "hi"}, "messages: invalid string"),
        ("chat/completions", {"messages": None}, "messages: missing; the prompt is required"),
        ("completions", {"prompt": None}, "prompt: missing"),
        (
            "completions",
            {"prompt": ["a"] * 4097},
            "prompt: array of more than 4096 prompts; at most",
        ),
        ("embeddings", {"input": None}, "input: missing"),
        ("responses", {"background": True}, "background: true; answers are generated while"),
    ],
)
def test_an_error_names_field_value_kind_and_rule(
    route: Route, fields: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        decode(route, **fields)
    assert str(error.value).startswith(text)
    assert error.value.field == text.partition(":")[0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "body: not valid JSON"),
        (b'{"model"', "body: not valid JSON"),
        (b"[]", "body: not an object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body: nested too deeply"),
        (b'{"messages":[1]}', "model: missing"),
        (b'{"model":"\xff","messages":[1]}', "model: invalid string"),
        (b'{"\xff":1}', "body: not valid JSON"),
    ],
)
def test_bytes_that_are_no_request_are_refused(body: bytes, text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        RequestBody.decode("chat/completions", body)
    assert str(error.value).startswith(text)


def test_an_error_never_quotes_the_body() -> None:
    with pytest.raises(InvalidRequest) as error:
        decode("chat/completions", max_tokens="my secret", messages=["my secret"])
    assert "secret" not in str(error.value)
