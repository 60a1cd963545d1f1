"""A node of Ray has no more than its worker; `tests/e2e/test_ray.py` starts the real Ray."""

from __future__ import annotations

from berth_client.launch_ray import GIB, OBJECTS_MIN, address_for_ray, resources


def test_a_node_is_bounded_to_its_worker() -> None:
    options = dict(word.removeprefix("--").split("=") for word in resources(2, 3, 4))
    objects, memory = int(options.pop("object-store-memory")), int(options.pop("memory"))
    assert options == {"num-gpus": "2", "num-cpus": "3"}
    assert objects + memory == 4 * GIB
    assert objects == int(1.2 * GIB)


def test_objects_have_what_ray_takes_at_least() -> None:
    assert f"--object-store-memory={OBJECTS_MIN}" in resources(0, 1, 0.1)


def test_without_a_bound_of_memory_ray_has_that_of_the_node() -> None:
    assert resources(0, 1, 0) == ["--num-gpus=0", "--num-cpus=1"]


def test_ray_on_one_machine_stays_on_the_loopback() -> None:
    assert address_for_ray("127.0.0.1") == "127.0.0.2"
    assert address_for_ray("10.0.0.7") == "10.0.0.7"
