"""Read models of jobs, nodes, tenants, answers, faults and LLM requests."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE cursor (
    ledger text NOT NULL,
    partition integer NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (ledger, partition)
);

CREATE TABLE job_event (
    ledger text NOT NULL,
    partition integer NOT NULL,
    seq bigint NOT NULL,
    idx integer NOT NULL,
    at bigint NOT NULL,
    type text NOT NULL,
    job_id text NOT NULL,
    tenant text NOT NULL,
    data text NOT NULL,
    cause text NOT NULL,
    traceparent text NOT NULL,
    PRIMARY KEY (ledger, partition, seq, idx)
);
CREATE INDEX job_event_of_job ON job_event (job_id);

CREATE TABLE job_admission (
    job_id text PRIMARY KEY,
    partition integer NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    user_id text NOT NULL,
    priority_class text NOT NULL,
    workers integer NOT NULL,
    gpus double precision NOT NULL,
    array_index integer,
    spec text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    submitted_at bigint NOT NULL,
    decided_at bigint NOT NULL,
    cancel_requested_at bigint NOT NULL,
    traceparent text NOT NULL
);

CREATE TABLE job_placement (
    job_id text PRIMARY KEY,
    partition integer NOT NULL,
    tenant text NOT NULL,
    attempt integer NOT NULL,
    phase text NOT NULL,
    enqueued_at bigint NOT NULL,
    waiting_since bigint NOT NULL,
    placed_at bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    exit_code integer,
    reason text NOT NULL,
    held_reason text NOT NULL,
    short_gpus double precision NOT NULL,
    preemptions integer NOT NULL,
    gpu_ms bigint NOT NULL,
    ran_ms bigint NOT NULL,
    nodes text NOT NULL
);

CREATE TABLE node (
    node_id text PRIMARY KEY,
    partition integer NOT NULL,
    incarnation text NOT NULL,
    executor_id text NOT NULL,
    backend text NOT NULL,
    gpu_type text NOT NULL,
    gpus integer NOT NULL,
    cpus double precision NOT NULL,
    mem_gib double precision NOT NULL,
    rack text NOT NULL,
    labels text NOT NULL,
    alive boolean NOT NULL,
    cordoned boolean NOT NULL,
    draining boolean NOT NULL,
    reason text NOT NULL,
    joined_at bigint NOT NULL,
    lost_at bigint NOT NULL
);

CREATE TABLE queue_rank (
    lane text PRIMARY KEY,
    partition integer NOT NULL,
    base_policy text NOT NULL,
    model_sha256 text NOT NULL,
    waiting integer NOT NULL,
    ranked text NOT NULL,
    terms text NOT NULL,
    at bigint NOT NULL
);

CREATE TABLE tenant (
    tenant text PRIMARY KEY,
    default_pool text NOT NULL,
    weight double precision NOT NULL,
    active boolean NOT NULL,
    registered_at bigint NOT NULL
);

CREATE TABLE pool (
    pool text PRIMARY KEY,
    partition integer NOT NULL,
    time_scale double precision NOT NULL,
    settings text NOT NULL
);

CREATE TABLE endpoint (
    endpoint text PRIMARY KEY,
    partition integer NOT NULL,
    tokens_per_s double precision NOT NULL,
    batch_tokens bigint NOT NULL
);

CREATE TABLE tenant_usage (
    usage_id text PRIMARY KEY,
    tenant text NOT NULL,
    partition integer NOT NULL,
    gpu_ms bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    preempted bigint NOT NULL
);

CREATE TABLE quota (
    quota_id text PRIMARY KEY,
    tenant text NOT NULL,
    partition integer NOT NULL,
    guaranteed_gpus double precision NOT NULL,
    borrow_gpus double precision,
    spot_gpus double precision
);

CREATE TABLE command (
    command_id text PRIMARY KEY,
    ledger text NOT NULL,
    partition integer NOT NULL,
    type text NOT NULL,
    of text NOT NULL,
    tenant text NOT NULL,
    accepted boolean NOT NULL,
    duplicate boolean NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    answers integer NOT NULL,
    at bigint NOT NULL
);

CREATE TABLE fault (
    fault_id text PRIMARY KEY,
    partition integer NOT NULL,
    job_id text NOT NULL,
    tenant text NOT NULL,
    node_id text NOT NULL,
    allocation_id text NOT NULL,
    slowdown double precision NOT NULL,
    score double precision NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    suspected_at bigint NOT NULL,
    closed_at bigint NOT NULL
);

CREATE TABLE llm_request (
    request_key text PRIMARY KEY,
    partition integer NOT NULL,
    request_id text NOT NULL,
    tenant text NOT NULL,
    endpoint text NOT NULL,
    application text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    wait_s double precision NOT NULL,
    waited_ms bigint NOT NULL,
    served_ms bigint NOT NULL,
    queued_at bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL
);

CREATE TABLE llm_tenant (
    account text PRIMARY KEY,
    partition integer NOT NULL,
    tenant text NOT NULL,
    requests bigint NOT NULL,
    rejected bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL
);

CREATE TABLE allocation (
    allocation_id text PRIMARY KEY,
    partition integer NOT NULL,
    job_id text NOT NULL,
    tenant text NOT NULL,
    attempt integer NOT NULL,
    rank integer NOT NULL,
    node_id text NOT NULL,
    gpus text NOT NULL,
    gpu_milli integer NOT NULL,
    cpus double precision NOT NULL,
    mem_gib double precision NOT NULL,
    placed_at bigint NOT NULL,
    released_at bigint NOT NULL,
    reason text NOT NULL,
    exit_code integer
);

CREATE TABLE dead_letter (
    dead_id text PRIMARY KEY,
    ledger text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    reason text NOT NULL,
    sha256 text NOT NULL,
    tenant text NOT NULL,
    at bigint NOT NULL
);

CREATE INDEX job_admission_by_time ON job_admission (submitted_at DESC, job_id DESC);
CREATE INDEX job_placement_alive ON job_placement (phase)
    WHERE phase NOT IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX allocation_of_job ON allocation (job_id);
CREATE INDEX allocation_held ON allocation (node_id) WHERE released_at = 0;
"""

VIEWS = """
CREATE VIEW job AS
SELECT
    a.job_id, a.partition, a.tenant, a.name, a.user_id, a.priority_class, a.workers, a.gpus,
    a.array_index, a.spec, a.submitted_at, a.cancel_requested_at, a.traceparent,
    CASE
        WHEN a.state IN ('rejected', 'cancelled', 'deferred') THEN a.state
        WHEN p.job_id IS NULL THEN 'admitted'
        ELSE p.phase
    END AS phase,
    COALESCE(p.attempt, 0) AS attempt,
    CASE WHEN a.state IN ('rejected', 'cancelled', 'deferred') THEN a.reason
         WHEN p.held_reason <> '' THEN p.held_reason
         ELSE COALESCE(p.reason, '') END AS reason,
    a.detail, p.exit_code,
    COALESCE(p.waiting_since, 0) AS waiting_since,
    COALESCE(p.placed_at, 0) AS placed_at,
    COALESCE(p.started_at, 0) AS started_at,
    CASE WHEN a.state IN ('rejected', 'cancelled') THEN a.decided_at
         ELSE COALESCE(p.ended_at, 0) END AS ended_at,
    COALESCE(p.short_gpus, 0) AS short_gpus,
    COALESCE(p.preemptions, 0) AS preemptions,
    COALESCE(p.gpu_ms, 0) AS gpu_ms,
    COALESCE(p.ran_ms, 0) AS ran_ms,
    COALESCE(p.nodes, '[]') AS nodes
FROM job_admission a LEFT JOIN job_placement p USING (job_id);

CREATE VIEW why_waiting AS
SELECT
    job_id, tenant, ledger, partition, seq, idx, at, type, data,
    lead(at) OVER (PARTITION BY job_id ORDER BY at, ledger, seq, idx) AS until
FROM job_event
WHERE type IN (
    'job.admitted.v1', 'job.deferred.v1', 'job.readmitted.v1', 'job.rejected.v1',
    'job.enqueued.v1', 'job.held.v1', 'job.placed.v1', 'job.start-failed.v1',
    'job.preempted.v1', 'job.requeued.v1', 'job.attempt-failed.v1', 'job.cancelled.v1',
    'job.succeeded.v1', 'job.failed.v1'
);

CREATE VIEW queue AS
SELECT
    p.partition, r.position, p.job_id, p.tenant, a.name, a.priority_class, a.gpus, p.attempt,
    p.waiting_since, p.held_reason, p.short_gpus, r.score, r.base_policy, r.model_sha256,
    r.at AS ranked_at
FROM job_placement p
LEFT JOIN job_admission a USING (job_id)
LEFT JOIN (
    SELECT q.partition, q.base_policy, q.model_sha256, q.at,
           e.value ->> 'job_id' AS job_id, (e.value ->> 'score')::float8 AS score, e.position
    FROM queue_rank q, jsonb_array_elements(q.ranked::jsonb) WITH ORDINALITY AS e (value, position)
) r ON r.job_id = p.job_id AND r.partition = p.partition
WHERE p.phase = 'waiting';

CREATE VIEW gpu AS
SELECT
    n.partition, n.node_id, n.gpu_type, g.gpu,
    n.alive AND NOT n.cordoned AS usable,
    COALESCE(sum(l.gpu_milli), 0)::integer AS used_milli,
    COALESCE(string_agg(l.job_id, ',' ORDER BY l.job_id), '') AS jobs
FROM node n
CROSS JOIN LATERAL generate_series(0, n.gpus - 1) AS g (gpu)
LEFT JOIN allocation l
    ON l.node_id = n.node_id AND l.released_at = 0 AND l.gpus::jsonb @> to_jsonb(g.gpu)
GROUP BY n.partition, n.node_id, n.gpu_type, g.gpu, n.alive, n.cordoned;

CREATE VIEW usage_by_tenant AS
SELECT tenant, sum(gpu_ms)::bigint AS gpu_ms, sum(succeeded)::bigint AS succeeded,
       sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled,
       sum(preempted)::bigint AS preempted
FROM tenant_usage GROUP BY tenant;
"""


def upgrade() -> None:
    for statement in (TABLES + VIEWS).split(";\n"):
        if statement.strip():
            op.execute(statement)
