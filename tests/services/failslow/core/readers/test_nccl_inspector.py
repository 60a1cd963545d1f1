"""The inspector's file names the GPU for which the others wait."""

from __future__ import annotations

import pytest

from services.failslow.core.readers.nccl_inspector import EXEC_TIME, awaited, read_samples, waits_s

COMMON = (
    'version="v5.1",slurm_job_id="1670760",node="n{node}",gpu="GPU{gpu}",comm_name="unknown",'
    'n_nodes="2",nranks="4",collective="{collective}",message_size="134-135MB",'
    'algo_proto="RING_SIMPLE"'
)


def a_file(node: int, times_us: list[float], collective: str = "AllReduce") -> str:
    """The file of one node, in the form of the plugin's version 5."""
    lines = ["# HELP nccl_bus_bandwidth_gbs NCCL bus bandwidth", "# TYPE x gauge", ""]
    for gpu, time_us in enumerate(times_us):
        labels = COMMON.format(node=node, gpu=gpu, collective=collective)
        lines += [
            f"nccl_bus_bandwidth_gbs{{{labels}}} 44.1181",
            f"{EXEC_TIME}{{{labels}}} {time_us}",
        ]
    return "\n".join(lines)


def test_the_gpu_that_waits_least_is_awaited() -> None:
    samples = [
        *read_samples(a_file(1, [104_164, 101_000]) + "\n" + a_file(1, [52_000, 51_000], "Bcast")),
        *read_samples(a_file(2, [103_000, 20_000]) + "\n" + a_file(2, [51_500, 9_000], "Bcast")),
    ]
    waits = waits_s(samples)
    assert list(waits) == ["n1/GPU0", "n1/GPU1", "n2/GPU0", "n2/GPU1"]
    assert awaited(waits) == ["n2/GPU1"]


def test_equal_waits_show_no_gpu_and_a_lone_gpu_has_none() -> None:
    waits = waits_s(read_samples(a_file(1, [100, 101, 99, 102])))
    assert awaited(waits) == [] and max(waits.values()) < 0.001
    assert waits_s(read_samples(a_file(1, [100]))) == {}
    assert awaited({}) == []
    assert awaited({"a": 1.0, "b": 9.0}) == [], "no majority"


def test_labels_of_the_first_version_and_escapes_are_read() -> None:
    line = (
        'nccl_collective_exec_time_microseconds{comm_id="0xd152c00f111816",collective="AllReduce",'
        'hostname="pool0-0002",rank="4",slurm_job="a \\"b\\" \\\\ c",n_ranks="8",'
        'timestamp="2025-10-17T03:31:47Z",gpu_device_id="GPU4",message_size="2.00GB"}'
        " 12.5 1760671907"
    )
    [sample] = read_samples(line)
    assert (sample.name, sample.gpu, sample.value) == (EXEC_TIME, "pool0-0002/GPU4", 12.5)
    assert sample.labels["slurm_job"] == 'a "b" \\ c'
    assert "timestamp" not in dict(sample.operation)


def test_values_without_labels_are_read() -> None:
    [sample] = read_samples("nccl_collectives_total 7\n")
    assert (sample.labels, sample.gpu) == ({}, "/rank ?")


@pytest.mark.parametrize(
    "line", ["nccl_x{a=1} 2", 'nccl_x{a="1"}', "nccl_x many", "{} 2", "a b c d"]
)
def test_another_line_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match="NCCL inspector: line 2: "):
        read_samples(f"# a comment\n{line}\n")
