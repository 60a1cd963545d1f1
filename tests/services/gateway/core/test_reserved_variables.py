"""The variables that a submission may not set are exactly those that an agent replaces."""

from __future__ import annotations

from berth_agent.core.environment import environment, master_port_variables
from berth_agent.node.output.output_progress import VARIABLE
from services.gateway.core.reserved_variables import GANG_VARIABLES, reserved_variables
from tests.agent.core.test_environment import launches, own_of


def test_a_job_may_set_what_an_agent_keeps_and_nothing_else() -> None:
    own = {**own_of(launches([1])[0]), **(master_port_variables(1) or {})}
    of_job = {name: "of the job" for name in (*own, "BERTH_X", "LR", "PATH", "MASTER")}
    kept = environment({}, of_job, own)
    replaced = {name for name in of_job if kept.get(name) != "of the job"}
    assert set(reserved_variables(of_job)) == replaced
    assert {name for name in replaced if not name.startswith("BERTH_")} == GANG_VARIABLES


def test_the_one_variable_of_berth_that_agents_read_is_allowed() -> None:
    assert reserved_variables([VARIABLE]) == []


def test_case_matters_as_on_a_node() -> None:
    assert reserved_variables(["rank", "berth_x", "XBERTH_X"]) == []
