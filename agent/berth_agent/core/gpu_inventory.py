"""GPUs that a node offers, whole ones or instances of MIG, compared with the driver's list.

A GPU type that ends in a profile of MIG, as `a100-1g.10gb`, offers the instances of that profile:
each is a GPU, by its number among those registered. Other types offer whole GPUs, by the number
that the driver gives them. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from berth_agent.messages import GpuReading

BETWEEN = "[-_. ]?"
MODEL = re.compile(rf"(?<![a-z])(?:(gb|gh|rtx|gtx|[abhklmpv]){BETWEEN}(\d{{2,}})|([lt])(4))(?!\d)")
"""The model in a GPU type, as in `h100-80gb` and `nvidia-l4`; other types name none."""
SLICES = r"(?:\d+c\.)?\d+g\.\d+gb"
PROFILE_OF_TYPE = re.compile(rf"(?:^|[-_])({SLICES}(?:[.-][a-z]+)*)$")
PROFILE_IN_NAME = re.compile(rf"(?<![0-9a-z]){SLICES}(?:[+.-][a-z]+)*")


class MigInstance(NamedTuple):
    """A part of a GPU that MIG keeps apart from the others."""

    gpu: int
    """Number of the GPU that it is a part of, as the driver counts."""
    uuid: str
    profile: str


NONE = MigInstance(-1, "", "")
"""In the place of an instance that is gone, behind which others keep their numbers."""


def profile_of(gpu_type: str) -> str:
    """Return the profile of MIG that a GPU type names; empty: it means whole GPUs."""
    profile = PROFILE_OF_TYPE.search(gpu_type.lower())
    return profile.group(1) if profile else ""


def profile_in(name: str) -> str:
    """Return the profile in the driver's name of an instance, as a type can have it."""
    profile = PROFILE_IN_NAME.search(name.lower())
    return profile.group().replace("+", ".") if profile else ""


def instances_of(profile: str, readings: Iterable[GpuReading]) -> tuple[MigInstance, ...]:
    """Return the instances of a profile in the order of the driver."""
    return tuple(one for one in _all_instances(readings) if one.profile == profile)


def renumbered(
    before: Sequence[MigInstance], listed: Sequence[MigInstance]
) -> tuple[MigInstance, ...]:
    """Return the listed instances by number: one that had a number keeps it, others fill gaps.

    A process that could not be killed is known by the number of its GPU.
    """
    kept = {instance.uuid for instance in before}
    there = {instance.uuid: instance for instance in listed}
    new = iter([instance for instance in listed if instance.uuid not in kept])
    numbered = [there.get(instance.uuid) or next(new, NONE) for instance in before]
    numbered += new
    while numbered and numbered[-1] == NONE:
        numbered.pop()
    return tuple(numbered)


def numbers_of(
    registered: Sequence[MigInstance], gpus: Iterable[int], unusable: Collection[int]
) -> tuple[int, ...]:
    """Return the numbers of the instances that are parts of these GPUs."""
    parents = frozenset(gpus)
    return tuple(
        number
        for number, instance in enumerate(registered)
        if instance.gpu in parents and number not in unusable
    )


def gone_instances(
    registered: Sequence[MigInstance], readings: Sequence[GpuReading]
) -> dict[int, MigInstance]:
    """Return by number those that are not listed any more, unless their GPU does not answer."""
    listed = {instance.uuid for instance in _all_instances(readings)}
    lost = {reading.gpu for reading in readings if reading.lost}
    return {
        number: instance
        for number, instance in enumerate(registered)
        if instance != NONE and instance.uuid not in listed and instance.gpu not in lost
    }


def differences(
    declared: int,
    gpu_type: str,
    unusable: Collection[int],
    readings: Sequence[GpuReading],
    registered: Sequence[MigInstance] = (),
) -> Iterator[str]:
    """Return how the GPUs differ from the declared number and type; none of none is declared.

    `registered` are the instances by number, where the node has registered any.
    """
    if declared == 0:
        return
    if profile := profile_of(gpu_type):
        yield from _differing_instances(declared, gpu_type, profile, readings)
        yield from _changed_instances(profile, unusable, readings, registered)
        return
    if 0 < declared != len(readings):
        yield f"gpus: {declared} declared, the driver lists {len(readings)}"
    for reading in readings:
        if reading.gpu in unusable:
            continue
        yield from _differing_model(gpu_type, reading)
        if reading.mig_instances is not None:
            yield _split(gpu_type, reading)


def lack_of_instances(gpu_type: str, readings: Iterable[GpuReading]) -> str:
    """Return that no instance of the type is there, and which others are."""
    there = _summary(readings) or "no instance of MIG"
    return f"gpu_type: {gpu_type}; no instance of {profile_of(gpu_type)} is there: {there}"


def is_of_type(gpu_type: str, name: str) -> bool:
    """Return whether a product name has the model that a type names, if it names one."""
    model = MODEL.search(gpu_type.lower())
    if model is None:
        return True
    letters, digits = (part for part in model.groups() if part)
    return re.search(rf"{letters}{BETWEEN}{digits}(?!\d)", name.lower()) is not None


def _all_instances(readings: Iterable[GpuReading]) -> Iterator[MigInstance]:
    for reading in readings:
        for uuid, profile in zip(reading.mig_uuids, reading.mig_profiles, strict=False):
            yield MigInstance(reading.gpu, uuid, profile)


def _differing_instances(
    declared: int, gpu_type: str, profile: str, readings: Sequence[GpuReading]
) -> Iterator[str]:
    """Return how number and model of the instances differ."""
    offered = instances_of(profile, readings)
    # A GPU that does not answer is a fault, and lists no instances.
    is_counted = not any(reading.lost for reading in readings)
    if is_counted and not offered:
        yield lack_of_instances(gpu_type, readings)
    elif is_counted and 0 < declared != len(offered):
        there = f"{len(offered)} of {profile} are there: {_summary(readings)}"
        yield f"gpus: {declared} declared, {there}"
    parents = {instance.gpu for instance in offered}
    for reading in readings:
        if reading.gpu in parents:
            yield from _differing_model(gpu_type, reading)


def _changed_instances(
    profile: str,
    unusable: Collection[int],
    readings: Sequence[GpuReading],
    registered: Sequence[MigInstance],
) -> Iterator[str]:
    """Return which instances differ from those that the ledger has."""
    for number, instance in gone_instances(registered, readings).items():
        if number not in unusable:
            yield f"GPU {number} ({instance.uuid}) is not there any more"
    known = {instance.uuid for instance in registered}
    new = [one.uuid for one in instances_of(profile, readings) if one.uuid not in known]
    if registered and new:
        yield f"new instances are not offered until the node joins anew: {', '.join(new)}"


def _differing_model(gpu_type: str, reading: GpuReading) -> Iterator[str]:
    if reading.name and not is_of_type(gpu_type, reading.name):
        yield f"gpu_type: {gpu_type} declared, GPU {reading.gpu} is {reading.name}"


def _split(gpu_type: str, reading: GpuReading) -> str:
    """Return what to do about a GPU that MIG splits, on a node of whole ones."""
    profiles = _summary((reading,)) or f"GPU {reading.gpu}: no instance"
    stem = gpu_type if _model_of(gpu_type) else _model_of(reading.name) or "gpu"
    offer = "".join(
        f"offer them by gpu_type {stem}-{profile}, "
        for profile in filter(None, reading.mig_profiles[:1])
    )
    return f"{profiles} of MIG: {offer}name GPU {reading.gpu} in unusable_gpus, or switch MIG off"


def _model_of(text: str) -> str:
    """Return the model that a type or product names, as `a100`, else nothing."""
    model = MODEL.search(text.lower())
    return "".join(part for part in model.groups() if part) if model else ""


def _summary(readings: Iterable[GpuReading]) -> str:
    """Return the number of instances by GPU and profile."""
    counts = Counter((one.gpu, one.profile or "unknown") for one in _all_instances(readings))
    return ", ".join(f"GPU {gpu}: {count} of {name}" for (gpu, name), count in counts.items())
