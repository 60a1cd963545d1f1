"""`berth endpoints`: a change keeps the other settings, and a wrong one is explained."""

from __future__ import annotations

import pytest

from cli.commands import endpoints as verbs
from cli.errors import BadInput, NotFound, Refused
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream
from tests.cli.settings_api import VERSION, SettingsApi, replace_api

MODEL = "meta/Llama-3"
PRESENT = EndpointConfigured(
    endpoint=MODEL,
    partition=1,
    upstreams=(Upstream(name="a", url="http://a:1"), Upstream(name="b", url="http://b:1")),
    queue_limit=9,
).model_dump(mode="json")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> SettingsApi:
    api = SettingsApi("endpoint", MODEL, PRESENT, ConfigureEndpoint, open=True)
    replace_api(monkeypatch, verbs, api)
    return api


def test_a_change_keeps_the_other_settings(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.set_(MODEL, ["slack=5", "queue_limit=null"], ["c=http://c:1,max_requests=8"], ["a"])
    [body] = api.bodies
    assert (body["if_version"], body["slack"], body["queue_limit"]) == (VERSION, 5, None)
    assert [upstream["name"] for upstream in body["upstreams"]] == ["b", "c"]
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["queue_limit: 9 -> 200", "slack: 0 -> 5", "upstreams: a, b -> b, c"]


def test_an_endpoint_is_created_once_and_set_when_it_is_there(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused, match="the endpoint exists: .*; `berth endpoints set` changes it"):
        verbs.create(MODEL)
    with pytest.raises(NotFound, match="no such endpoint: m; .* `berth endpoints create m`"):
        verbs.set_("m", ["slack=5"])
    assert api.bodies == []
    api.settings = {**PRESENT, "aliases": ["chat"]}
    with pytest.raises(NotFound, match=f"no such endpoint: chat; it is another name of {MODEL}"):
        verbs.show("chat")
    verbs.create("m", ["discipline=vtc"], ["a=http://a:1"])
    upstreams = [{"name": "a", "url": "http://a:1"}]
    expected = {"endpoint": "m", "discipline": "vtc", "upstreams": upstreams}
    assert api.bodies == [{**expected, "if_version": "absent"}]
    verbs.create("m")
    assert "no upstream yet: `berth endpoints set" in capsys.readouterr().out


def test_an_endpoint_or_one_of_its_upstreams_is_drained(api: SettingsApi) -> None:
    verbs.drain(MODEL)
    verbs.drain(MODEL, undo=True)
    verbs.drain(MODEL, upstream="b")
    assert [body.get("drained") for body in api.bodies] == [True, False, None]
    drained = [upstream["drained"] for upstream in api.bodies[-1]["upstreams"]]
    assert drained == [False, True]
    assert [body.get("if_version") for body in api.bodies] == [None, None, VERSION]
    with pytest.raises(NotFound, match=f"no such upstream: x; {MODEL} has: a, b"):
        verbs.drain(MODEL, upstream="x")


def test_an_endpoint_is_deleted_by_its_name(api: SettingsApi) -> None:
    verbs.delete(MODEL)
    assert api.deleted == ["/v1/endpoints/meta%2FLlama-3"]
    with pytest.raises(NotFound, match="no such endpoint: m"):
        verbs.delete("m")


def test_the_settings_of_an_endpoint_are_shown(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
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
def test_a_wrong_setting_is_explained(api: SettingsApi, words: list[str], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        verbs.set_(MODEL, words)
    assert api.bodies == []
