from __future__ import annotations

import json
from typing import get_args

from typer.testing import CliRunner

from cli.api.http import Json
from cli.main import app
from shared.contracts.pools import BasePolicy
from shared.schedulers.registry import scheduler_classes


def listed(*words: str) -> list[Json]:
    result = CliRunner().invoke(app, ["policies", "--json", *words])
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


def test_every_policy_is_listed_with_its_setting_decisions_needs_and_source() -> None:
    rows = listed()
    assert {row["name"] for row in rows} == {*get_args(BasePolicy), *scheduler_classes()}
    by_name = {row["simulated"]: row for row in rows}
    assert by_name["qssf"]["needs"] == ["history"]
    assert by_name["rounds:gavel"] == {
        "name": "gavel",
        "pool_setting": "scheduler",
        "simulated": "rounds:gavel",
        "decides": ["type", "share of time"],
        "needs": ["rates"],
        "source": "Narayanan et al., OSDI'20, max-min fairness",
    }


def test_those_of_pools_alone_leave_out_what_no_pool_carries_out() -> None:
    names = {row["simulated"] for row in listed("--pools")}
    assert {"srsf", "rounds:sia", "rounds:pollux"} <= names
    assert not {"rounds:synergy", "rounds:muri"} & names


def test_the_table_has_a_row_for_each() -> None:
    result = CliRunner().invoke(app, ["policies"])
    assert result.exit_code == 0
    assert "POOL SETTING" in result.stdout
    assert "priority_class" in result.stdout
