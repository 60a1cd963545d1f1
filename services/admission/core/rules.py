"""The rules between fields that a well-formed submission must keep besides its types."""

from __future__ import annotations

from services.admission.core.body import canonical_body
from services.admission.core.verdict import Reject
from shared.contracts.array_programs import without_program
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import NO_RESOURCES, PODS_FROM, JobSpec
from shared.contracts.pool_rules import (
    Rule,
    check_backends,
    check_bundle,
    check_command,
    check_image,
    check_simulated,
)
from shared.contracts.pools import PoolConfigured
from shared.contracts.transfers import TRANSFERS_FROM
from shared.contracts.validation import LEAST_NODES, LONGEST_S, MOST_NODES, VALIDATIONS_FROM

MAX_ID_CHARS = 64
MAX_BODY_BYTES = 256 * 1024
"""Its events must fit a ledger's record, with room for their envelope."""
MAX_ARRAY_BYTES = 32 * 1024 * 1024
"""Of the specs of all jobs of an array, without the program, where that is recorded once."""

ARRAYS_HELD_FROM = 1
"""The release whose pools know ranges of arrays and hold their jobs."""


def check_workers(spec: JobSpec, pool: PoolConfigured) -> str | None:
    elastic, workers = spec.elastic, spec.gang.workers
    if elastic is None or elastic.min_workers <= workers <= elastic.max_workers:
        return None
    low, high = elastic.min_workers, elastic.max_workers
    return f"gang.workers: {workers}: must lie in the elastic range {low}..{high}"


def check_spot(spec: JobSpec, pool: PoolConfigured) -> str | None:
    if spec.spot and not spec.preemptible:
        return "preemptible: false: a spot job must be preemptible"
    if spec.spot and spec.guaranteed_s > 0:
        return f"guaranteed_s: {spec.guaranteed_s:g}: must be 0 for a spot job"
    return None


def check_resources(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why a job without GPUs, cores and memory is refused."""
    return None if spec.gang.has_resources else f"gang.gpus_per_worker: {NO_RESOURCES}"


def check_validation(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why a job that measures nodes is refused."""
    nodes = spec.validates
    if not nodes:
        rule = "must be absent without `validates`"
        return f"measures: {spec.measures!r}: {rule}" if spec.measures is not None else None
    if pool.release < VALIDATIONS_FROM:
        return f"validates: {len(nodes)} nodes: must be absent until `berth upgrade finish`"
    if not LEAST_NODES <= len(nodes) == len(set(nodes)) <= MOST_NODES:
        rule = f"must be {LEAST_NODES} to {MOST_NODES} different nodes"
        return f"validates: {', '.join(nodes[:8])}: {rule}"
    if spec.gang.workers != len(nodes) or spec.elastic is not None:
        return f"gang.workers: {spec.gang.workers}: must be {len(nodes)}, one per validated node"
    if spec.walltime_s is None or spec.walltime_s > LONGEST_S * pool.time_scale:
        longest_s = LONGEST_S * pool.time_scale
        return f"walltime_s: {spec.walltime_s}: a validation needs one of at most {longest_s:g}"
    return None


def check_array(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the jobs of an array cannot be numbered or held: earlier releases do neither."""
    named = {"array_at_once": spec.array_at_once, "array_first": spec.array_first or None}
    early = next(((name, value) for name, value in named.items() if value is not None), None)
    if early is None or pool.release >= ARRAYS_HELD_FROM:
        return None
    return f"{early[0]}: {early[1]}: must be absent until `berth upgrade finish`"


def check_pools(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the job cannot have several pools, this one among them."""
    if spec.pools is None:
        return None if spec.transferred is None else "transferred: must be absent without `pools`"
    named = ", ".join(spec.pools)
    if pool.release < TRANSFERS_FROM:
        return f"pools: {named}: must be absent until `berth upgrade finish`"
    if pool.pool not in spec.pools or len(set(spec.pools)) < len(spec.pools):
        return f"pools: {named}: must be different pools, and {pool.pool} one of them"
    if spec.validates:
        return f"pools: {named}: must be absent for a job that measures nodes"
    return None


def check_single(command: SubmitJob) -> str | None:
    """Return why an array cannot have several pools: its jobs are counted in one."""
    if command.spec.pools is None or (command.array_size == 1 and command.array_index is None):
        return None
    return f"pools: {', '.join(command.spec.pools)}: must be absent for the jobs of an array"


def check_pods(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why pods that exist cannot be the workers of the job."""
    if spec.pods is None:
        return None
    if pool.release < PODS_FROM:
        return f"pods: {len(spec.pods)}: must be absent until `berth upgrade finish`"
    if "kubernetes" not in pool.backends:
        return (
            f"pods: {len(spec.pods)}: must be absent in pool {pool.pool}, which has no Kubernetes"
        )
    if spec.pools is not None:
        return f"pods: {len(spec.pods)}: must be absent with `pools`: pods stay in their cluster"
    if len(set(spec.pods)) != spec.gang.workers or spec.elastic is not None:
        return f"gang.workers: {spec.gang.workers}: must be the number of different pods"
    return None


def check_operator(command: SubmitJob) -> Reject | None:
    """Return why a tenant may not submit this: cordoned nodes are the operators'."""
    if not command.spec.validates or command.by_operator:
        return None
    nodes = ", ".join(command.spec.validates[:8])
    return Reject("above_bound", f"validates: {nodes}: must be absent; it is of operators alone")


RULES: tuple[Rule, ...] = (
    check_backends,
    check_workers,
    check_spot,
    check_command,
    check_image,
    check_bundle,
    check_simulated,
    check_resources,
    check_validation,
    check_array,
    check_pools,
    check_pods,
)


def check_rules(pool: PoolConfigured, command: SubmitJob, body_bytes: int) -> Reject | None:
    if body_bytes > MAX_BODY_BYTES:
        detail = f"spec: {body_bytes} bytes: at most {MAX_BODY_BYTES} bytes are allowed"
        return Reject("too_large", detail)
    if pool.programs_once and (violation := check_array_bytes(command)):
        return Reject("too_large", violation)
    if refusal := check_operator(command):
        return refusal
    last_index = command.array_size - 1
    last_id = f"{command.job_id}.{last_index}" if last_index else command.job_id
    if len(last_id) > MAX_ID_CHARS:
        detail = f"job_id: {last_id!r}: at most {MAX_ID_CHARS} characters, array index included"
        return Reject("invalid_spec", detail)
    if violation := check_single(command):
        return Reject("invalid_spec", violation)
    for rule in RULES:
        violation = rule(command.spec, pool)
        if violation is not None:
            return Reject("invalid_spec", violation)
    return None


def check_array_bytes(command: SubmitJob) -> str | None:
    """Return why the jobs of an array need too many bytes: each repeats all but the program."""
    if command.array_size == 1:
        return None
    job_bytes = len(canonical_body(without_program(command.spec), 1))
    total = command.array_size * job_bytes
    if total <= MAX_ARRAY_BYTES:
        return None
    return (
        f"array_size: {command.array_size}: its jobs need {job_bytes} bytes each besides command "
        f"and env, {total} in all: at most {MAX_ARRAY_BYTES} are allowed"
    )
