"""`berth endpoints`: a change keeps the other settings, and a wrong one is explained."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from cli.commands import endpoints as verbs
from cli.errors import BadInput, NotFound, Refused
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream

MODEL = "meta/Llama-3"
PRESENT = EndpointConfigured(
    endpoint=MODEL,
    partition=1,
    upstreams=(Upstream(name="a", url="http://a:1"), Upstream(name="b", url="http://b:1")),
    queue_limit=9,
).model_dump(mode="json")


class EndpointsApi:
    """One endpoint, which takes the settings that it is sent."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = PRESENT
        self.bodies: list[dict[str, Any]] = []
        self.deleted: list[str] = []

    def row(self) -> dict[str, Any]:
        row = {"endpoint": MODEL, "partition": 1, "version": "5" * 16, "open": True}
        return {**row, "settings": self.settings}

    def get(self, path: str) -> dict[str, Any]:
        if path == "/v1/endpoints":
            return {"items": [self.row()]}
        if unquote(path) != f"/v1/endpoints/{MODEL}":
            raise NotFound("not_found")
        return self.row()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/v1/endpoints"
        self.bodies.append(body)
        command = ConfigureEndpoint.model_validate(body)
        self.settings = command.model_dump(mode="json", exclude={"if_version"})
        return {"command_id": "c"}

    def delete(self, path: str) -> dict[str, Any]:
        self.deleted.append(path)
        return {"command_id": "c"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> EndpointsApi:
    api = EndpointsApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
    return api


def test_a_change_keeps_the_other_settings(
    api: EndpointsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.set_(MODEL, ["slack=5", "queue_limit=null"], ["c=http://c:1,max_requests=8"], ["a"])
    [body] = api.bodies
    command = ConfigureEndpoint.model_validate(body)
    assert (command.if_version, command.slack, command.queue_limit) == ("5" * 16, 5.0, 200)
    assert [upstream.name for upstream in command.upstreams] == ["b", "c"]
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["queue_limit: 9 -> 200", "slack: 0 -> 5", "upstreams: a, b -> b, c"]


def test_an_endpoint_is_created_once_and_set_when_it_is_there(
    api: EndpointsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused, match="the endpoint exists: .*; `berth endpoints set` changes it"):
        verbs.create(MODEL)
    with pytest.raises(NotFound, match="no such endpoint: m; .* `berth endpoints create m`"):
        verbs.set_("m", ["slack=5"])
    assert api.bodies == []
    verbs.create("m", ["discipline=vtc"], ["a=http://a:1"])
    upstreams = [{"name": "a", "url": "http://a:1"}]
    expected = {"endpoint": "m", "discipline": "vtc", "upstreams": upstreams}
    assert api.bodies == [{**expected, "if_version": "absent"}]
    verbs.create("m")
    assert "no upstream yet: `berth endpoints set" in capsys.readouterr().out


def test_an_endpoint_or_one_of_its_upstreams_is_drained(api: EndpointsApi) -> None:
    verbs.drain(MODEL)
    verbs.drain(MODEL, undo=True)
    verbs.drain(MODEL, upstream="b")
    assert [body["drained"] for body in api.bodies] == [True, False, False]
    drained = [upstream["drained"] for upstream in api.bodies[-1]["upstreams"]]
    assert drained == [False, True]
    with pytest.raises(NotFound, match=f"no such upstream: x; {MODEL} has: a, b"):
        verbs.drain(MODEL, upstream="x")


def test_an_endpoint_is_deleted_by_its_name(api: EndpointsApi) -> None:
    verbs.delete(MODEL)
    assert api.deleted == ["/v1/endpoints/meta%2FLlama-3"]
    with pytest.raises(NotFound, match="no such endpoint: m"):
        verbs.delete("m")


def test_the_settings_of_an_endpoint_are_shown(
    api: EndpointsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.show(MODEL)
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["queue_limit"], shown["aliases"]) == ("9", "-")
    assert shown["a"].split()[0] == "http://a:1"
    verbs.list_()
    assert capsys.readouterr().out.splitlines()[1].split()[0] == MODEL


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "no setting; NAME=VALUE, --upstream or --remove-upstream is allowed"),
        (["upstreams=a"], "unknown setting: upstreams; one of adapters, "),
        (["queue_limit=0"], "^queue_limit: 0; greater than or equal to 1 is allowed$"),
    ],
)
def test_a_wrong_setting_is_explained(api: EndpointsApi, words: list[str], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        verbs.set_(MODEL, words)
    assert api.bodies == []
