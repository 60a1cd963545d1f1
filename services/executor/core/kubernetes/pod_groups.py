"""Gangs of pods that users created, and the job that is submitted for each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from services.executor.core.kubernetes.pod_requests import PodRequest
from services.executor.core.kubernetes.pods import PodSeen
from shared.contracts.identity import derive_job_id
from shared.contracts.job_spec import Gang, JobSpec

LEAST_CPUS = 0.001
"""Cores of a worker whose pod requests nothing: every job takes some."""
NUMBERS = re.compile("([0-9]+)")


class FreePod(NamedTuple):
    """A pod that waits for its node, and what it requests."""

    pod: PodSeen
    request: PodRequest


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods of one gang, by rank, as many of them as are there."""

    namespace: str
    name: str
    size: int
    members: tuple[FreePod, ...]

    @property
    def is_whole(self) -> bool:
        return len(self.members) == self.size

    @property
    def pods(self) -> tuple[PodSeen, ...]:
        return tuple(member.pod for member in self.members)

    @property
    def fault(self) -> str:
        """Return why none of it can be placed; empty if nothing speaks against it."""
        return next((member.request.fault for member in self.members if member.request.fault), "")


@dataclass(frozen=True, slots=True)
class PodSubmission:
    """The job of a group, as its tenant would submit it; a repetition is the same job."""

    tenant: str
    pool: str
    key: str
    spec: JobSpec

    @property
    def job_id(self) -> str:
        return derive_job_id(self.tenant, self.pool, self.key)


def groups_of(free: Iterable[FreePod]) -> Iterator[PodGroup]:
    """Yield the groups of pods that belong to no job yet.

    Where more pods of a group are there than it has, the oldest ones are together.
    """
    by_name: dict[tuple[str, str], list[FreePod]] = {}
    for member in free:
        pod, request = member
        name = request.group or f"/{pod.name}"
        by_name.setdefault((pod.namespace, name), []).append(member)
    for (namespace, name), members in by_name.items():
        size = max(member.request.size for member in members) if members[0].request.group else 1
        members.sort(key=lambda member: (member.pod.created, _rank_key(member)))
        for first in range(0, len(members), size):
            chosen = sorted(members[first : first + size], key=_rank_key)
            yield PodGroup(namespace, name.rpartition("/")[2], size, tuple(chosen))


def _rank_key(member: FreePod) -> tuple[tuple[int, int], list[tuple[int, str]], str]:
    """Return the place of a pod among those of its gang: by index, then by the numbers in names."""
    parts = NUMBERS.split(member.pod.name)
    natural = [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
    return member.request.index, natural, member.pod.uid


def submission_of(group: PodGroup, tenant: str, pool: str, time_scale: float) -> PodSubmission:
    """Return the job of a whole group. A worker gets what the largest of its pods requests.

    The key follows from the pods and from all that the job says, so that another job has another.
    """
    requests = [member.request for member in group.members]
    pods = group.pods
    deadlines = [r.deadline_s for r in requests if r.deadline_s is not None]
    classes = [r.priority_class for r in requests if r.priority_class]
    more = {"priority_class": classes[0]} if classes else {}
    if len(deadlines) == len(requests):
        more["walltime_s"] = max(deadlines) * time_scale  # type: ignore[assignment]
    spec = JobSpec.model_validate(
        {
            "name": group.name,
            "gang": Gang(
                workers=group.size,
                gpus_per_worker=max(pod.gpus for pod in pods),
                cpus_per_worker=max(LEAST_CPUS, *(pod.cpus for pod in pods)),
                mem_gib_per_worker=max(pod.mem_gib for pod in pods),
            ),
            "grace_s": max(request.grace_s for request in requests),
            "pods": tuple(pod.uid for pod in pods),
            **more,
        }
    )
    digest = hashlib.sha256(f"{group.namespace}\n{spec.model_dump_json()}".encode()).hexdigest()
    return PodSubmission(tenant, pool, f"pods-{digest[:40]}", spec)
