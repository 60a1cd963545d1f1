"""A round as it would be in a pool of three GPU types, with throughputs that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow.parquet as pq

from services.placement.core.solver.instance import GangRequest, Instance, NodeClass
from simulator.workload.errors import TraceError
from simulator.workload.locate import locate

TYPES = ("k80", "p100", "v100")

Table = list[Mapping[str, float]]
"""Per model: GPU type -> speed, relative to its best type."""


def throughputs() -> Table | None:
    """Gavel's single-GPU throughputs (OSDI '20, MIT licence), None without the shared traces."""
    try:
        rows = pq.read_table(locate("gavel_throughputs")).to_pylist()
    except TraceError:
        return None
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        alone = row["coloc_type"] is None and row["scale_factor"] == 1
        if alone and row["gpu_type"] in TYPES and row["tput"]:
            found.setdefault(row["job_type"], {})[row["gpu_type"]] = row["tput"]
    return [
        {name: speed / max(speeds.values()) for name, speed in speeds.items()}
        for _, speeds in sorted(found.items())
        if len(speeds) == len(TYPES)
    ]


def mixed(instance: Instance, table: Table) -> Instance:
    """Every node gets a type, every job a model; greedy, which knows neither, stays as it is."""
    classes: list[NodeClass] = []
    split: list[list[tuple[int, str]]] = []
    for number, cls in enumerate(instance.classes):
        parts: dict[str, list[int]] = {}
        for at in range(len(cls.nodes)):
            parts.setdefault(TYPES[(number + at) % len(TYPES)], []).append(at)
        split.append([])
        for name, members in parts.items():
            split[-1].append((len(classes), name))
            classes.append(replace(cls, nodes=tuple(cls.nodes[at] for at in members)))
    requests = tuple(
        of_model(request, table[index * 7 % len(table)], split)
        for index, request in enumerate(instance.requests)
    )
    victims = tuple(
        replace(victim, request=of_model(victim.request, dict.fromkeys(TYPES, 1.0), split))
        for victim in instance.victims
    )
    return replace(instance, classes=tuple(classes), requests=requests, victims=victims)


def of_model(
    request: GangRequest, speeds: Mapping[str, float], split: list[list[tuple[int, str]]]
) -> GangRequest:
    homes = [
        (cls, max(1, round(speed * speeds[name])))
        for old, speed in zip(request.classes, request.speeds, strict=True)
        for cls, name in split[old]
    ]
    classes, found = zip(*homes, strict=True) if homes else ((), ())
    return replace(request, classes=tuple(classes), speeds=tuple(found))
