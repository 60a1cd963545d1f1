"""Networks on traces left out of their training: cells, goals, and the choice of what ships."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.parts.policies.left_out import (
    LeftOutCell,
    Networks,
    cell_of,
    default_policy,
    goals_of,
    mean_of,
    read_networks,
    worst_mean,
)
from benchmarks.parts.policies.left_out_page import cell_table, render_page
from simulator.kernel.weights import untrained
from simulator.metrics.policy_jobs import PolicyJobs
from training.left_out import TrainedNetwork, add


def networks(tmp_path: Path, *validated: float) -> Networks:
    theta = untrained(2, 0).tolist()
    path = tmp_path / "left_out.json"
    for seed, ratio in enumerate(validated):
        add(TrainedNetwork("philly", "evolution", seed, 5, ratio, [1.0], 4000, 1.0, theta), path)
    add(TrainedNetwork("philly", "ppo", 0, 0, 1.0, [1.0], 4000, 1.0, theta), path)
    return read_networks(path)


def cell(method: str, seed: int, gain: float, chosen: bool = True) -> LeftOutCell:
    return LeftOutCell("philly", 0.0, method, seed, chosen, gain, -0.5, 0.5)


def side(delays_s: list[float]) -> PolicyJobs:
    values = np.array(delays_s)
    return PolicyJobs(values, values, values, np.arange(len(values)), values, values)


def test_networks_are_read_with_their_fold_and_validation_chooses_the_seed(tmp_path: Path) -> None:
    own = networks(tmp_path, 0.99, 0.93)
    assert own.fold_of("helios_vc_users") == own.fold_of("helios_venus") == "helios"
    assert own.chosen("philly", "evolution").seed == 1
    assert [network.name for network in own.of("philly")] == ["evolution 0", "evolution 1", "ppo 0"]
    assert own.of("philly")[0].rules.rules.policy == "learned"
    assert "theta" not in own.plain()["networks"][0]


def test_a_trained_network_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    networks(tmp_path, 0.99)
    assert len(networks(tmp_path, 0.95).all) == 2
    assert networks(tmp_path, 0.95).all[0].validated == 0.95


def test_without_networks_the_error_says_how_to_train_them(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"left_out.json: not found; `python -m training.left_out`"
    ):
        read_networks(tmp_path / "left_out.json")


def test_a_cell_is_the_ratio_of_the_mean_waits(tmp_path: Path) -> None:
    (network, *_) = networks(tmp_path, 0.9).all
    gittins = [float(n % 7 + 1) for n in range(200)]
    own = cell_of("t", 0.5, network, True, (side(gittins), side([d / 2 for d in gittins])))
    assert own.wait_vs_gittins == pytest.approx(-0.5)
    assert own.ci_high is not None and own.ci_high < -0.4


def test_a_network_ships_only_if_the_chosen_ones_wait_a_tenth_less(tmp_path: Path) -> None:
    own = networks(tmp_path, 0.9, 0.8)
    cells = [cell("evolution", 0, 0.2, False), cell("evolution", 1, -0.11), cell("ppo", 0, -0.09)]
    goals = list(goals_of(cells, own).values())
    assert goals[0] == "met: -11.0% (1 of 1 traces; worst seeds +20.0%)"
    assert goals[1] == "not met: -9.0% (1 of 1 traces; worst seeds -9.0%)"
    assert goals[2] == "met: 4,000"
    assert default_policy(cells, own) == "the network of evolution"
    worse = [replace(cells[1], wait_vs_gittins=-0.09), cells[2]]
    assert default_policy(worse, own) == "the Gittins rank"
    assert list(goals_of([], own).values())[0] == "not measured"


def test_a_method_that_was_not_tried_on_every_trace_does_not_ship(tmp_path: Path) -> None:
    own = networks(tmp_path, 0.9)
    cells = [cell("evolution", 0, 0.0), cell("ppo", 0, -0.5)]
    cells.append(replace(cell("evolution", 0, 0.0), trace="itp"))
    assert default_policy(cells, own) == "the Gittins rank"
    assert list(goals_of(cells, own).values())[1].startswith("not met: -50.0% (1 of 2 traces")


def test_means_are_geometric_and_the_worst_is_of_each_trace() -> None:
    cells = [cell("evolution", 0, 1.0), cell("evolution", 1, -0.5, False)]
    cells.append(replace(cell("evolution", 0, -0.5), trace="itp"))
    assert mean_of(cells[:2]) == pytest.approx(0.0)
    assert worst_mean(cells, "evolution") == pytest.approx(0.0)
    assert mean_of([]) is None


def test_the_page_marks_the_chosen_and_says_what_ships(tmp_path: Path) -> None:
    own = networks(tmp_path, 0.9)
    cells = [cell("evolution", 0, -0.05).plain(), cell("ppo", 0, 0.01).plain()]
    cells[1]["ci_low"] = None
    result = {
        **own.plain(),
        "goals": {"g": "met"},
        "default": "the Gittins rank",
        "cells": cells,
        "batches": [],
        "rltune": {},
    }
    page = render_page(json.loads(json.dumps(result)))
    assert "| philly | 0% | **-5%** (-50% to +50%) | **+1%** |" in page
    assert "**the Gittins rank** ships" in page
    assert "| philly | evolution 0 | 5 | 0.900 | 0.950 | 4,000 | 1 |" in page
    assert "60 to 3600 s" in page
    assert cell_table(cells).startswith("| trace | never stopped | evolution 0 | ppo 0 |")
