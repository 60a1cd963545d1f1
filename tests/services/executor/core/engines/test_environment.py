"""Workers in an engine get the variables that agents give, and those that the job names."""

from __future__ import annotations

from berth_agent.core.environment import own_variables
from berth_agent.messages import Launch as AgentLaunch
from services.executor.core.engines.environment import gang_variables, rank_variables
from tests.services.executor.core.engines.looks import gang_of, placed_history

OF_THE_AGENT = {"BERTH_TELEMETRY", "BERTH_TELEMETRY_TOKEN", "BERTH_ALLOCATION_TOKEN"}
BY_SLURM = {"CUDA_VISIBLE_DEVICES"}


def test_a_worker_gets_what_an_agent_would_give_it() -> None:
    for worker in gang_of(placed_history()).workers:
        launch = AgentLaunch(**worker.launch.model_dump(exclude={"failure"}))
        agents = own_variables(launch, node_id=worker.node_id, token="t", telemetry="t")
        ours = gang_variables(worker.launch) | rank_variables(worker.launch, worker.node_id)
        expected = {k: v for k, v in agents.items() if v != "t" and k not in BY_SLURM}
        assert expected.items() <= ours.items()


def test_the_job_replaces_paths_and_never_berths_own() -> None:
    launch = gang_of(placed_history()).launch
    changed = launch.model_copy(update={"env": {"PATH": "/opt", "BERTH_JOB_ID": "x", "RANK": "9"}})
    made = gang_variables(changed)
    assert (made["PATH"], made["BERTH_JOB_ID"]) == ("/opt", "j")
    assert gang_variables(launch)["A"] == "1"
