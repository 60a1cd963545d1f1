"""The declaration of a node is compared with whole GPUs and with instances of MIG."""

from __future__ import annotations

import pytest

from berth_agent.core.gpu_inventory import (
    NONE,
    MigInstance,
    differences,
    gone_instances,
    instances_of,
    is_of_type,
    numbers_of,
    profile_in,
    profile_of,
    renumbered,
)
from berth_agent.messages import GpuReading

SLICES = "h100-1g.10gb"


def gpus(count: int, name: str = "NVIDIA H100 80GB HBM3") -> tuple[GpuReading, ...]:
    return tuple(GpuReading(gpu=number, name=name) for number in range(count))


def test_a_difference_names_what_is_declared_and_what_is_there() -> None:
    assert list(differences(8, "h100", (), gpus(7))) == ["gpus: 8 declared, the driver lists 7"]
    assert list(differences(1, "a100-80g", (), gpus(1))) == [
        "gpu_type: a100-80g declared, GPU 0 is NVIDIA H100 80GB HBM3"
    ]


def split(gpu: int, *profiles: str) -> GpuReading:
    """Return a GPU with instances `MIG-<gpu>-<n>`."""
    uuids = tuple(f"MIG-{gpu}-{n}" for n in range(len(profiles)))
    name = "NVIDIA H100 80GB HBM3"
    return GpuReading(
        gpu=gpu, name=name, mig_instances=len(profiles), mig_uuids=uuids, mig_profiles=profiles
    )


def test_a_split_gpu_among_whole_ones_is_named_with_what_can_be_done() -> None:
    [words] = differences(-1, "h100", (), (split(0, *["1g.10gb"] * 7), *gpus(2)[1:]))
    assert words == (
        "GPU 0: 7 of 1g.10gb of MIG: offer them by gpu_type h100-1g.10gb, name GPU 0 in"
        " unusable_gpus, or switch MIG off"
    )
    [words] = differences(-1, "cpu", (), (split(0, "1g.10gb"),))
    assert "offer them by gpu_type h100-1g.10gb, name" in words
    [words] = differences(-1, "h100", (), (split(0),))
    assert words.startswith("GPU 0: no instance of MIG: name GPU 0 in")


def test_what_is_declared_unusable_or_not_at_all_does_not_differ() -> None:
    other = GpuReading(gpu=0, name="NVIDIA A100-SXM4-40GB", mig_instances=7)
    assert list(differences(2, "h100", (0,), (other, *gpus(2)[1:]))) == []
    assert list(differences(-1, "big", (), gpus(3))) == []
    assert list(differences(0, "cpu", (), (other,))) == []


@pytest.mark.parametrize(
    ("gpu_type", "name", "is_same"),
    [
        ("h100", "NVIDIA H100 80GB HBM3", True),
        ("nvidia-h100-80gb-hbm3", "NVIDIA H100 80GB HBM3", True),
        ("h200", "NVIDIA H100 80GB HBM3", False),
        ("a10", "NVIDIA A100-SXM4-40GB", False),
        ("a10", "NVIDIA A10G", True),
        ("v100m32", "Tesla V100-SXM2-32GB", True),
        ("rtx-4090", "NVIDIA GeForce RTX 4090", True),
        ("rtx-4090", "NVIDIA GeForce RTX 3090", False),
        ("t4", "Tesla T4", True),
        ("l40s", "NVIDIA L4", False),
        ("slot", "NVIDIA L4", True),
        ("gpu-8", "NVIDIA L4", True),
        ("p4d", "NVIDIA A100-SXM4-40GB", True),
    ],
)
def test_a_type_is_compared_by_the_model_that_it_names(
    gpu_type: str, name: str, is_same: bool
) -> None:
    assert is_of_type(gpu_type, name) is is_same


@pytest.mark.parametrize(
    ("gpu_type", "profile"),
    [
        ("a100-1g.10gb", "1g.10gb"),
        ("nvidia-h100-80gb-1c.3g.40gb", "1c.3g.40gb"),
        ("h100-1g.10gb.me", "1g.10gb.me"),
        ("rtx-pro-6000-1g.24gb-me", "1g.24gb-me"),
        ("1g.5gb", "1g.5gb"),
        ("h100-80gb", ""),
        ("gpu.l40s", ""),
        ("a100-11g10gb", ""),
    ],
)
def test_a_type_that_ends_in_a_profile_means_instances_of_it(gpu_type: str, profile: str) -> None:
    assert profile_of(gpu_type) == profile


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb"),
        ("MIG 1c.3g.20gb", "1c.3g.20gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "1g.10gb.me"),
        ("NVIDIA H100 80GB HBM3", ""),
        ("", ""),
    ],
)
def test_the_driver_names_the_profile_of_an_instance(name: str, profile: str) -> None:
    assert profile_in(name) == profile


def test_instances_of_other_profiles_and_whole_gpus_are_left_alone() -> None:
    readings = (*gpus(1), split(1, "1g.10gb", "2g.20gb"), split(2, "1g.10gb"))
    registered = instances_of("1g.10gb", readings)
    assert registered == (
        MigInstance(1, "MIG-1-0", "1g.10gb"),
        MigInstance(2, "MIG-2-0", "1g.10gb"),
    )
    assert list(differences(2, SLICES, (), readings, registered)) == []
    assert list(differences(-1, SLICES, (), readings)) == []
    assert numbers_of(registered, (2, 0), ()) == (1,)
    assert numbers_of(registered, (1, 2), (0,)) == (1,)


def test_a_difference_of_instances_says_what_is_there() -> None:
    readings = (split(0, "1g.10gb", "1g.10gb", "3g.40gb"), *gpus(2)[1:])
    assert list(differences(7, SLICES, (), readings)) == [
        "gpus: 7 declared, 2 of 1g.10gb are there: GPU 0: 2 of 1g.10gb, GPU 0: 1 of 3g.40gb"
    ]
    assert list(differences(-1, SLICES, (), gpus(1))) == [
        f"gpu_type: {SLICES}; no instance of 1g.10gb is there: no instance of MIG"
    ]
    assert list(differences(1, "a100-1g.10gb", (), (split(0, "1g.10gb"),))) == [
        "gpu_type: a100-1g.10gb declared, GPU 0 is NVIDIA H100 80GB HBM3"
    ]
    assert list(differences(0, SLICES, (), gpus(1))) == []


def test_instances_that_came_or_went_since_the_registration_are_named() -> None:
    before = instances_of("1g.10gb", (split(0, "1g.10gb", "1g.10gb"), split(1, "1g.10gb")))
    made_anew = GpuReading(
        gpu=0, mig_instances=2, mig_uuids=("MIG-0-1", "MIG-new"), mig_profiles=("1g.10gb",) * 2
    )
    readings = (made_anew, split(1, "1g.10gb"))
    assert list(differences(3, SLICES, (), readings, before)) == [
        "GPU 0 (MIG-0-0) is not there any more",
        "new instances are not offered until the node joins anew: MIG-new",
    ]
    assert set(gone_instances(before, readings)) == {0}
    assert list(differences(-1, SLICES, (0,), (split(1, "1g.10gb"), made_anew), before)) == [
        "new instances are not offered until the node joins anew: MIG-new"
    ]


def test_numbers_stay_and_gaps_are_filled() -> None:
    a, b, c, d = (MigInstance(0, name, "1g.10gb") for name in "abcd")
    assert renumbered((), (a, b)) == (a, b)
    assert renumbered((a, b, c), (c, d)) == (d, NONE, c)
    assert renumbered((a, b, c), (a, d)) == (a, d), "what is last and gone leaves no gap"
    assert renumbered((d, NONE, c), (a, b, c, d)) == (d, a, c, b)
    readings = (GpuReading(gpu=0, mig_instances=1, mig_uuids=("c",), mig_profiles=("1g.10gb",)),)
    assert list(differences(1, SLICES, (), readings, (NONE, NONE, c))) == []


def test_a_gpu_that_does_not_answer_takes_none_of_its_instances_away() -> None:
    before = instances_of("1g.10gb", (split(0, "1g.10gb"), split(1, "1g.10gb")))
    readings = (GpuReading(gpu=0, lost=True), split(1, "1g.10gb"))
    assert list(differences(2, SLICES, (), readings, before)) == []
    assert not gone_instances(before, readings)
