"""Inventory files."""

from __future__ import annotations

import json

import pytest

from services.executor.core.virtual.inventory import parse_inventory


def text(**more: object) -> str:
    group = {"id": "a100-{00..15}", "gpu_type": "a100", "gpus": 8, "cpus": 96, "mem_gib": 1024}
    return json.dumps({"pool": "demo", "nodes": [{**group, **more}]})


def test_a_range_names_all_its_nodes_with_equal_width() -> None:
    nodes = parse_inventory(text(count=16))
    assert [nodes[0].node_id, nodes[9].node_id, nodes[15].node_id] == [
        "a100-00",
        "a100-09",
        "a100-15",
    ]
    assert nodes[0].backend == "virtual" and nodes[0].gpus == 8


def test_several_pools_may_stand_in_one_file() -> None:
    one = json.loads(text(id="n1"))
    two = {**json.loads(text(id="n2")), "pool": "other", "backend": "virtual"}
    assert [(n.pool, n.backend) for n in parse_inventory(json.dumps([one, two]))] == [
        ("demo", "virtual"),
        ("other", "virtual"),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        text(count=3),
        text(colour="red"),
        text(id="UPPER"),
        text(gpus=-1),
        "not json",
        json.dumps([json.loads(text(id="n1")), json.loads(text(id="n1"))]),
    ],
)
def test_an_inventory_that_contradicts_itself_is_refused(bad: str) -> None:
    with pytest.raises(ValueError):
        parse_inventory(bad)


def test_an_inventory_of_processes_names_the_remedy() -> None:
    inventory = {**json.loads(text()), "backend": "process"}
    with pytest.raises(ValueError, match="'virtual' is allowed, processes need an agent"):
        parse_inventory(json.dumps(inventory))
