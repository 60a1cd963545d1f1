"""Settings of a pool with agents change one by one; its jobs are of the tenants that it names."""

from __future__ import annotations

import json

import pytest

from tests.e2e.agents.jobs import SHORT, SHORT_TERMS, berth
from tests.e2e.stand import Stand

pytestmark = pytest.mark.stack


def test_an_operator_changes_one_setting_of_a_pool(stand: Stand) -> None:
    assert berth(stand, "pools", "set", SHORT, "rank_ms=77") == "rank_ms: 1000 -> 77\n"
    settings = json.loads(berth(stand, "pools", "show", SHORT, "--json"))["settings"]
    kept = {name: settings[name] for name in SHORT_TERMS}
    assert (settings["rank_ms"], settings["backends"], kept) == (77, ["agent"], SHORT_TERMS)
    assert SHORT in berth(stand, "pools", "list")


def test_of_two_changes_of_one_version_of_a_pool_the_second_is_refused(stand: Stand) -> None:
    shown = json.loads(berth(stand, "pools", "show", SHORT, "--json"))
    settings = {name: value for name, value in shown["settings"].items() if name != "partition"}
    body = {**settings, "if_version": shown["version"]}
    assert stand.call("POST", "/v1/pools", {**body, "round_ms": 101})[0] == 202
    status, problem = stand.call("POST", "/v1/pools", {**body, "round_ms": 102})
    assert (status, problem["reason"]) == (409, "version_conflict")
    berth(stand, "pools", "set", SHORT, "round_ms=null")


def test_a_pool_takes_jobs_of_the_tenants_that_it_names(stand: Stand) -> None:
    assert berth(stand, "pools", "set", SHORT, "tenants=bob") == "tenants: - -> bob\n"
    job = {"pool": SHORT, "spec": {"name": "j", "command": ["true"]}}
    _, ticket = stand.call("POST", "/v1/jobs", job, caller="ada")
    answer = stand.answer(ticket["command_id"])
    assert (answer["accepted"], answer["reason"]) == (False, "tenant_not_allowed")
    assert "tenant 'ada' is not in the pool's setting `tenants`" in answer["detail"]
    assert berth(stand, "pools", "set", SHORT, "tenants=null") == "tenants: bob -> -\n"
