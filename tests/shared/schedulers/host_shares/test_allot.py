"""Synergy's rules: fair shares are kept, all jobs are placed, and greedy strands GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from shared.schedulers.host_shares.allot import Needs, greedy, proportional, tune
from shared.schedulers.host_shares.node_shares import HostCapacity, HostShare
from shared.schedulers.host_shares.sensitivity import PerGpu, Sensitivity

V100 = HostCapacity(8, 24_000, 512_000)
"""The node of Synergy's evaluation: 3 cores and 62.5 GiB per GPU."""
FAIR = V100.fair
IMAGE = Sensitivity((3000, 6000, 12_000), (64_000, 128_000), ((1.0, 1.1), (1.8, 2.0), (2.2, 3.0)))
LANGUAGE = Sensitivity((1000, 3000), (20_000, 64_000), ((1.0, 1.0), (1.0, 1.0)))
SPEECH = Sensitivity((1000, 3000, 6000), (64_000,), ((0.7,), (1.0,), (1.4,)))
KINDS = {"image": IMAGE, "language": LANGUAGE, "speech": SPEECH}


def job(name: str, gpus: int) -> Needs:
    return Needs(name, gpus, KINDS[name.split("-")[0]].saturating())


def speed(name: str, shares: HostShare) -> float:
    return KINDS[name.split("-")[0]].speed_with(shares.share)


def check(capacity: list[HostCapacity], jobs: list[Needs], shares: Mapping[str, HostShare]) -> None:
    """Nothing is given twice, and each job has its GPUs."""
    gpus, cpu, mem = Counter[int](), Counter[int](), Counter[int]()
    for wanted in jobs:
        if own := shares.get(wanted.job_id):
            assert sum(own.gpus.values()) == wanted.gpus
    for own in shares.values():
        for number, count in own.gpus.items():
            gpus[number] += count
            cpu[number] += count * own.share.cpu_milli
            mem[number] += count * own.share.mem_mib
    for number, node in enumerate(capacity):
        assert gpus[number] <= node.gpus
        assert cpu[number] <= node.cpu_milli and mem[number] <= node.mem_mib


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[HostCapacity], list[Needs]]:
    nodes = draw(st.lists(st.sampled_from([V100, HostCapacity(4, 16_000, 512_000)]), min_size=1))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=30))
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 4, 8, 16]), min_size=30, max_size=30))
    jobs = [job(f"{name}-{number:02}", sizes[number]) for number, name in enumerate(names)]
    held = accumulate(one.gpus for one in jobs)
    gpus = sum(node.gpus for node in nodes)
    return nodes, [one for one, total in zip(jobs, held, strict=True) if total <= gpus]


@given(rounds())
def test_tuning_places_all_and_slows_none(case: tuple[list[HostCapacity], list[Needs]]) -> None:
    capacity, jobs = case
    fair, tuned = proportional(capacity, jobs), tune(capacity, jobs)
    for shares in (fair, tuned, greedy(capacity, jobs)):
        check(capacity, jobs, shares)
    assert fair.keys() == tuned.keys() == {wanted.job_id for wanted in jobs}
    for wanted in jobs:
        assert speed(wanted.job_id, tuned[wanted.job_id]) >= 1.0


def test_proportional_gives_each_gpu_its_part() -> None:
    shares = proportional([V100, V100], [job("image-1", 4), job("speech-1", 12)])
    assert shares["image-1"].share == shares["speech-1"].share == FAIR
    assert sum(shares["speech-1"].gpus.values()) == 12


def test_cores_that_one_job_does_not_use_speed_up_another() -> None:
    jobs = [job("image-1", 1), job("language-1", 1)]
    pair = HostCapacity(2, 14_000, 256_000)
    tuned = tune([pair], jobs)
    assert tuned["image-1"].share == PerGpu(12_000, 128_000)
    assert tuned["language-1"].share == PerGpu(1000, 20_000)
    assert sum(speed(name, own) for name, own in tuned.items()) == 4.0


def test_a_job_gives_back_what_is_over_its_share() -> None:
    """The image job takes 12 cores first; a speech job that comes later gets its 3."""
    jobs = [job("image-1", 1), *(job(f"speech-{number}", 1) for number in range(7))]
    tuned = tune([V100], jobs)
    assert len(tuned) == 8
    assert all(own.share.cpu_milli >= FAIR.cpu_milli for own in tuned.values())


def test_greedy_strands_gpus() -> None:
    jobs = [job(f"image-{number}", 1) for number in range(8)]
    assert len(greedy([V100], jobs)) == 2
    assert len(tune([V100], jobs)) == 8
