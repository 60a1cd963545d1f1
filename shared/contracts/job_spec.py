"""The specification of a job: its gang, resources, retries, range of workers and rules of stops."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from shared.contracts.base import JobId, Model, Name, Text
from shared.contracts.bundles import BUNDLE
from shared.contracts.secrets import REFERENCE
from shared.contracts.state_changes import StateChange
from shared.contracts.transfers import MOST_POOLS, Transferred

PriorityClass = Literal["system", "high", "normal", "low"]
PRIORITY_CLASSES: tuple[PriorityClass, ...] = ("system", "high", "normal", "low")
"""Highest first. A job may preempt only jobs of a lower class."""
IMAGES_LABEL = "berth.images"
"""Label of a node with an agent: `yes` where jobs with an image run in a container, else `no`."""
HAS_IMAGES = "yes"
BUNDLES_LABEL = "berth.bundles"
"""Label of a node with an agent: `yes` where jobs can start with a bundle of files."""
HAS_BUNDLES = "yes"
NO_RESOURCES = "0: a worker needs some GPU, CPU core (0.001 or more) or memory (1 MiB or more)"
"""The fault of `gang.gpus_per_worker` where all three are 0: no node would bound such jobs."""
CREDENTIAL_WORDS = ("password", "passwd", "secret", "token", "api_key", "apikey", "private_key")
ORDINARY = re.compile("tokeniz|tokens")
"""Parts of names, as of `TOKENIZERS_PARALLELISM` and `MAX_TOKENS`, that name no credential."""

PODS_FROM = 1
"""First release whose executors know jobs of `pods`."""
MOST_PODS = 512
PodUid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class Gang(Model):
    """Workers of one shape that start together or not at all."""

    workers: int = Field(1, ge=1, le=4096, description="workers of the gang")
    gpus_per_worker: float = Field(
        1.0, ge=0, le=64, description="GPUs per worker: whole, or one fraction of a GPU below 1"
    )
    cpus_per_worker: float = Field(1.0, ge=0, le=1024, description="CPU cores per worker")
    mem_gib_per_worker: float = Field(1.0, ge=0, le=16384, description="memory per worker, GiB")

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_one_fraction(cls, value: float) -> float:
        if value > 1 and value != int(value):
            raise ValueError("above 1 it should be a whole number")
        if round(value * 1000) != value * 1000:
            value = round(value, 3)
        if 0 < value < 0.01:
            raise ValueError("a fraction of a GPU should be at least 0.01")
        return value

    @property
    def gpus(self) -> float:
        """Return the GPUs of the whole gang, in devices."""
        return self.workers * self.gpus_per_worker

    @property
    def has_resources(self) -> bool:
        """Return whether a worker takes anything of its node, in thousandths of a GPU or core, or
        MiB.
        """
        milli = round(self.gpus_per_worker * 1000) + round(self.cpus_per_worker * 1000)
        return milli + round(self.mem_gib_per_worker * 1024) > 0


class Elastic(Model):
    """The range of workers that the gang may run with."""

    min_workers: int = Field(ge=1, le=4096, description="fewest workers the job can run with")
    max_workers: int = Field(ge=1, le=4096, description="most workers the job can use")

    @model_validator(mode="after")
    def _ordered(self) -> Elastic:
        if self.min_workers > self.max_workers:
            raise ValueError("min_workers should be at most max_workers")
        return self


class Retry(Model):
    """The retry policy: attempts whose program failed count, preempted and lost ones do not."""

    max_attempts: int = Field(
        1, ge=1, le=100, description="number of attempts, including the first"
    )
    backoff_s: float = Field(1.0, ge=0, le=86400, description="cluster seconds before the next one")
    avoid_failed_node: bool = Field(True, description="avoid nodes on which it failed")


class Simulated(Model):
    """The behaviour of the job on the `virtual` backend; pools without it refuse it."""

    duration_s: float | None = Field(
        None, ge=0, le=1e9, description="cluster seconds of work; absent: derived from the job id"
    )
    exit_code: int = Field(0, ge=0, le=255, description="exit code at the end of the work")
    iteration_s: float = Field(1.0, gt=0, le=1e6, description="cluster seconds per iteration")
    restart_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster seconds that each start after a preemption takes before work goes on",
    )


UNKNOWN_USER = "unknown"

Spread = Literal["rack", "spine"]
"""The links of a gang that is on more than one node."""


class JobSpec(Model):
    """A job as requested. Times are cluster seconds: wall seconds times the pool's time scale."""

    name: Text = Field(min_length=1, description="name of the job, not unique")
    user: Name = Field(UNKNOWN_USER, description="id of a person or robot, never a name or address")
    command: tuple[str, ...] = Field((), max_length=256, description="argv of each worker; private")
    image: Text = Field(
        "", description="container image of the workers, of a node with an engine; empty: none"
    )
    workdir: str = Field(
        "",
        max_length=4096,
        pattern=r"^(/[^\x00-\x1f\x7f]*)?$",
        description="absolute directory of the workers; empty: a private one for each",
    )
    bundle: str = Field(
        "",
        pattern=BUNDLE,
        description="files that each worker starts with, in its directory: `sha256:` and the "
        "SHA-256 of the manifest of an uploaded bundle; empty: none",
    )
    env: dict[str, str] = Field(
        default_factory=dict, max_length=128, description="plain values or secret://name; private"
    )
    gang: Gang = Field(default_factory=Gang, description="workers and their shape")
    gpu_types: tuple[Name, ...] = Field(
        (), max_length=16, description="allowed GPU types; empty: any"
    )
    gpu_speeds: dict[Name, Annotated[float, Field(gt=0, le=1000)]] | None = Field(
        None,
        max_length=16,
        description="measured speed by GPU type, 0.001 at least; others run at 1",
    )
    spread_speeds: dict[Spread, Annotated[float, Field(gt=0, le=1)]] | None = Field(
        None,
        max_length=2,
        description="measured speed of the gang over several nodes of a rack (`rack`) and over "
        "several racks (`spine`), relative to one node, 0.001 at least; others: 1",
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, max_length=16, description="labels that a node must have"
    )
    priority_class: PriorityClass = Field("normal", description="class of the job")
    preemptible: bool = Field(True, description="may be preempted by a job of a higher class")
    spot: bool = Field(False, description="runs on the spot quota; any other job may preempt it")
    guaranteed_s: float = Field(0.0, ge=0, le=1e9, description="cluster s without preemption")
    grace_s: float = Field(5.0, ge=0, le=86400, description="wall s between stop request and kill")
    walltime_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="the user's estimate of the run time, cluster s, and the end of each start",
    )
    checkpoint_interval_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="cluster s of work between checkpoints; a preemption loses the work since the "
        "last one; absent: no checkpoints, all work is lost",
    )
    checkpoint_cost_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster s per checkpoint; if `grace_s` covers it, a preempted job that makes "
        "checkpoints makes one more at the stop and loses no more than this",
    )
    elastic: Elastic | None = Field(None, description="range of workers; absent: exactly `workers`")
    depends_on: tuple[JobId, ...] = Field(
        (), max_length=64, description="jobs that must have succeeded first"
    )
    retry: Retry = Field(default_factory=Retry, description="attempts after a failure")
    simulated: Simulated | None = Field(None, description="behaviour on the virtual backend")
    validates: tuple[Name, ...] = Field(
        (),
        max_length=64,
        description="of operators: nodes to measure by a worker on each, cordoned ones too",
    )
    measures: JobId | None = Field(
        None, description="with `validates`: the one job that may stop for it; absent: as for any"
    )

    array_at_once: int | None = Field(
        None,
        ge=1,
        le=10000,
        description="jobs of its array that may wait for GPUs or run at once; absent: all",
    )
    array_first: int = Field(
        0, ge=0, le=1_000_000, description="BERTH_ARRAY_INDEX of the first job of its array"
    )

    pods: tuple[PodUid, ...] | None = Field(
        None,
        min_length=1,
        max_length=MOST_PODS,
        description="UIDs of the pods that are its workers, by rank: its tenant created them in "
        "Kubernetes, and Berth binds them; absent: its executor makes the workers",
    )

    notify: tuple[StateChange, ...] = Field(
        (),
        max_length=8,
        description="state changes of which its authenticated user gets a mail, of an array one "
        "mail at its end",
    )

    pools: tuple[Name, ...] | None = Field(
        None,
        max_length=MOST_POOLS,
        description="pools in which it may run: it waits in the first, and is transferred to "
        "another that can start it at once; absent: one pool alone",
    )
    transferred: Transferred | None = Field(
        None, description="set by Berth: the pool that it comes from, and what it took along"
    )

    @field_validator("command")
    @classmethod
    def _argv(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(arg) > 8192 or "\x00" in arg for arg in argv):
            raise ValueError("each argument should have at most 8192 characters and no NUL")
        return argv

    @field_validator("env", "node_selector")
    @classmethod
    def _pairs(cls, pairs: dict[str, str]) -> dict[str, str]:
        for key, value in pairs.items():
            if (
                not key
                or len(key) > 128
                or len(value) > 8192
                or "\x00" in key + value
                or "=" in key
            ):
                raise ValueError(
                    f"{key[:40]!r} should have 1 to 128 characters without '=', its value at most "
                    "8192, neither a NUL"
                )
        return pairs

    @field_validator("env")
    @classmethod
    def _no_credentials(cls, env: dict[str, str]) -> dict[str, str]:
        for key, value in env.items():
            name = ORDINARY.sub("", key.lower())
            is_credential = any(word in name for word in CREDENTIAL_WORDS)
            if is_credential and value and not value.startswith(REFERENCE):
                raise ValueError(f"{key} looks like a credential: use {REFERENCE}name")
        return env


def selector_of(spec: JobSpec) -> dict[str, str]:
    """Return the labels that a node of the job must have: those it names, and those for its image
    and its bundle."""
    labels = dict(spec.node_selector or {})
    if spec.image:
        labels[IMAGES_LABEL] = HAS_IMAGES
    if spec.bundle:
        labels[BUNDLES_LABEL] = HAS_BUNDLES
    return labels
