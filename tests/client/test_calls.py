"""Every route of the API has a call, whose type is the answer that the route describes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest

from berth_client import AsyncClient, Client, answers, calls
from berth_client.admin import nodes, objects, records
from berth_client.calls import Call
from tests.services.gateway.answers import Operation, operations

LISTS = {
    "nodes": "/v1/nodes",
    "queue": "/v1/queue",
    "shares": "/v1/shares",
    "pools": "/v1/pools",
    "tenants": "/v1/tenants",
    "users": "/v1/users",
    "usage": "/v1/usage",
    "llm_usage": "/v1/llm/usage",
    "events": "/v1/events",
}
"""Methods of the clients that make their call themselves, and its path."""
OTHERS = {
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
    ("POST", "/v1/traces"),
    ("POST", "/agent/v1/join"),
    ("POST", "/agent/v1/renew"),
    ("DELETE", "/v1/jobs/{job_id}"),
    ("POST", "/v1/jobs/{job_id}/terminal"),
}
"""Routes of probes, services, nodes and terminals, and the short form of a cancellation."""
NOT_A_ROUTE = {"get", "following", "part"}
SAMPLES: dict[str, object] = {"bool": True, "bytes": b"x", "int": 1, "str": "x"}


class Made(NamedTuple):
    """A call, the type of its answer, and the route that it is for."""

    name: str
    call: Call[Any]
    answer: Any
    route: Operation | None


def functions(module: ModuleType) -> Iterator[Callable[..., Call[Any]]]:
    for name, value in vars(module).items():
        is_own = inspect.isfunction(value) and value.__module__ == module.__name__
        if is_own and not name.startswith("_") and name not in NOT_A_ROUTE:
            yield value


def sample(annotation: str) -> object:
    kind = annotation.removesuffix(" | None")
    return SAMPLES.get(kind, {})


def made(function: Callable[..., Call[Any]]) -> Made:
    parameters = inspect.signature(function).parameters.values()
    values = [sample(str(one.annotation)) for one in parameters]
    if function is calls.change_node:
        values[1] = "cordon"
    call = function(*values)
    (answer,) = get_args(get_type_hints(function)["return"])
    routes = (one for one in operations() if one.method == call.method)
    route = next((one for one in routes if one.pattern.fullmatch(call.path)), None)
    return Made(function.__name__, call, answer, route)


CALLS = [made(one) for module in (calls, nodes, objects, records) for one in functions(module)]


def schema_name(answer: Any) -> str:
    """Return the name that OpenAPI gives to the schema of a type."""
    if get_origin(answer) is answers.Page:
        return f"Page_{schema_name(get_args(answer)[0])}_"
    if get_origin(answer) is UnionType:
        return f"Union_{'__'.join(one.__name__ for one in get_args(answer))}_"
    return str(answer.__name__)


@pytest.mark.parametrize("one", CALLS, ids=lambda one: one.name)
def test_a_call_has_the_type_that_its_route_describes(one: Made) -> None:
    assert one.route is not None, f"{one.call.method} {one.call.path} is no route"
    described = next(
        answer for status, answer in one.route.responses.items() if status.startswith("2")
    )
    schemas = [media["schema"] for media in described["content"].values() if "schema" in media]
    references = [schema["$ref"].rpartition("/")[2] for schema in schemas if "$ref" in schema]
    assert schema_name(one.answer) in references


def test_every_route_has_a_call() -> None:
    called = {(one.route.method, one.route.path) for one in CALLS if one.route is not None}
    called |= {("POST", f"/v1/nodes/{{node_id}}/{change}") for change in ("uncordon", "drain")}
    listed = {("GET", path) for path in LISTS.values()}
    assert {(one.method, one.path) for one in operations()} == called | listed | OTHERS


def test_both_clients_have_the_methods_of_the_lists() -> None:
    for client in (Client, AsyncClient):
        assert all(callable(getattr(client, name, None)) for name in LISTS)
