"""Queries of the read models, of jobs beside their lists; `$1` is the tenant, NULL is every one."""

from __future__ import annotations

JOB_OF_LOG = """
SELECT j.phase, j.reason, j.attempt, j.backend, j.started_at, j.failure, p.pool,
       j.transferred_to,
       COALESCE(NULLIF((SELECT count(*) FROM allocation a
                        WHERE a.job_id = j.job_id AND a.attempt = j.attempt), 0),
                j.workers) AS workers,
       ARRAY(SELECT DISTINCT n.node_id FROM allocation a JOIN node n USING (node_id)
             WHERE a.job_id = j.job_id AND a.attempt = j.attempt AND n.state <> 'joined'
             ORDER BY n.node_id) AS silent_nodes
FROM job j LEFT JOIN pool p ON p.partition = j.partition
WHERE ($1::text IS NULL OR j.tenant = $1) AND j.job_id = $2
"""

JOB_OF_TERMINAL = """
SELECT j.tenant, j.user_id, p.pool, j.phase, j.backend, j.workers
FROM job j JOIN pool p USING (partition)
WHERE ($1::text IS NULL OR j.tenant = $1) AND j.job_id = $2
"""

LANE_OF_JOB = """
SELECT partition, user_id FROM job_admission
WHERE ($1::text IS NULL OR tenant = $1) AND job_id IN ($2, $2 || '.0') LIMIT 1
"""

SPEC_POSITION = """
SELECT e.partition, e.seq, COALESCE(c.at, e.at) AS accepted_at
FROM job_event e LEFT JOIN command c ON c.command_id = e.cause
WHERE ($1::text IS NULL OR e.tenant = $1) AND e.job_id = $2 AND e.ledger = 'admission'
  AND e.type IN ('job.admitted.v1', 'job.deferred.v1')
ORDER BY e.seq, e.idx LIMIT 1
"""
"""Jobs of an array have its submission as their cause."""

TIMELINE = """
SELECT ledger || '/' || partition || '/' || seq || '/' || idx AS id, at, type, data, cause,
       traceparent
FROM job_event WHERE ($1::text IS NULL OR tenant IN ($1, '')) AND job_id = ANY($2::text[])
ORDER BY at, ledger, seq, idx LIMIT 10000
"""

WHY = """
SELECT at, until, type, data FROM why_waiting
WHERE ($1::text IS NULL OR tenant IN ($1, '')) AND job_id = ANY($2::text[])
ORDER BY at, ledger, seq, idx LIMIT 10000
"""

ARCHIVED = """
SELECT leaving_at FROM retention WHERE name = 'job_event' AND leaving_at > $1
AND NOT EXISTS (SELECT FROM job_event e WHERE e.job_id = $2)
"""
"""A row where the history of a job that ended then has left the read models."""

LEFT = "SELECT leaving_at FROM retention WHERE name = $1 AND row_count > 0"

QUEUE_POSITION = """
SELECT h.base_policy, h.learned, h.runtime, h.model_sha256, h.waiting, h.at AS ranked_at, h.terms,
       r.position, r.score, h.best_score, r.score_ahead
FROM job_placement p JOIN rank_head h ON h.partition = p.partition
LEFT JOIN ranked_job r ON r.job_id = p.job_id AND r.job_id = $2
WHERE ($1::text IS NULL OR p.tenant = $1) AND p.job_id = $2 AND p.phase = 'waiting'
"""

START_ESTIMATE = """
SELECT e.at, e.data FROM job_event e JOIN job_placement p USING (job_id)
WHERE ($1::text IS NULL OR e.tenant = $1) AND e.job_id = $2
  AND e.type = 'job.start-estimated.v1' AND p.phase = 'waiting' AND e.at >= p.waiting_since
ORDER BY e.at DESC, e.seq DESC, e.idx DESC LIMIT 1
"""

STOP_DEFERRAL = """
SELECT e.at, e.data FROM job_event e JOIN job_placement p USING (job_id)
WHERE ($1::text IS NULL OR e.tenant = $1) AND e.job_id = $2
  AND e.type = 'job.stop-deferred.v1' AND p.phase = 'running' AND e.at >= p.started_at
ORDER BY e.at DESC, e.seq DESC, e.idx DESC LIMIT 1
"""
"""The last stop of a running job that was put off in this start."""

QUEUE_ESTIMATE = """
SELECT e.at, e.data FROM job_placement p JOIN job_admission own USING (job_id)
CROSS JOIN LATERAL (
  SELECT o.job_id, o.waiting_since FROM job_placement o
  JOIN job_admission a ON a.job_id = o.job_id AND a.gpus = own.gpus
  WHERE o.partition = p.partition AND o.tenant = p.tenant AND o.phase = 'waiting'
    AND o.waiting_since <= p.waiting_since
  ORDER BY o.waiting_since DESC, o.job_id DESC LIMIT 64
) last JOIN job_event e ON e.job_id = last.job_id
WHERE ($1::text IS NULL OR p.tenant = $1) AND p.job_id = $2 AND p.phase = 'waiting'
  AND e.type = 'job.start-estimated.v1' AND e.at >= last.waiting_since
ORDER BY last.waiting_since DESC, e.at DESC, e.seq DESC, e.idx DESC LIMIT 1
"""
"""The last estimate of the tenant's last waiting job before this one with as many GPUs."""

NEW_JOB_ESTIMATE = """
SELECT e.at, e.data FROM (
  SELECT o.job_id, o.waiting_since FROM job_placement o
  JOIN job_admission a ON a.job_id = o.job_id AND a.gpus = $3
  WHERE o.tenant = $1 AND o.partition = $2 AND o.phase = 'waiting'
  ORDER BY o.waiting_since DESC, o.job_id DESC LIMIT 64
) last JOIN job_event e ON e.job_id = last.job_id
WHERE e.type = 'job.start-estimated.v1' AND e.at >= last.waiting_since
ORDER BY last.waiting_since DESC, e.at DESC, e.seq DESC, e.idx DESC LIMIT 1
"""
"""The same for a job that is submitted now, to that lane."""

LAST_PLACEMENT = """
SELECT e.at, e.data FROM job_event e JOIN job_placement p USING (job_id)
WHERE ($1::text IS NULL OR e.tenant = $1) AND e.job_id = $2 AND e.type = 'job.placed.v1'
  AND p.phase <> 'waiting'
ORDER BY e.at DESC, e.seq DESC, e.idx DESC LIMIT 1
"""

_NODES = """
SELECT n.node_id, p.pool, n.backend, n.gpu_type, n.gpus, n.cpus, n.mem_gib, n.rack, n.labels,
       n.alive, n.cordoned, n.draining, n.health, n.reason, n.executor_id, n.joined_at, n.lost_at,
       n.state, n.silent_ms, n.suspected_at, n.lost_after_ms, n.generation, n.unusable_gpus,
       n.fencing, n.limits, n.injection, n.problems,
       n.suspicions,
       COALESCE(u.used_milli, '{}') AS used_milli
FROM node n LEFT JOIN pool p ON p.partition = n.partition
LEFT JOIN (SELECT node_id, array_agg(used_milli ORDER BY gpu) AS used_milli
           FROM gpu GROUP BY node_id) u ON u.node_id = n.node_id
"""
NODES = f"""{_NODES}
WHERE ($1::text IS NULL OR p.pool = $1) AND ($2::text IS NULL OR n.node_id > $2)
ORDER BY n.node_id LIMIT $3
"""
NODE = f"{_NODES} WHERE n.node_id = $1"

LANE_OF_NODE = "SELECT partition FROM node WHERE node_id = $1"

QUEUE = """
SELECT p.pool, q.position, q.job_id, q.tenant, q.name, q.priority_class, q.gpus, q.attempt,
       q.waiting_since, q.held_reason, q.short_gpus, q.score, q.base_policy, q.ranked_at
FROM queue q LEFT JOIN pool p ON p.partition = q.partition
WHERE ($1::text IS NULL OR q.tenant = $1) AND ($2::text IS NULL OR p.pool = $2)
ORDER BY p.pool, q.position NULLS LAST, q.waiting_since, q.job_id LIMIT $3
"""

ALLOCATIONS = """
SELECT a.allocation_id, p.pool, a.job_id, a.tenant, a.attempt, a.rank, a.node_id, a.gpus,
       a.gpu_milli, a.cpus, a.mem_gib, a.placed_at, a.released_at, a.reason, a.exit_code
FROM allocation a LEFT JOIN pool p ON p.partition = a.partition
WHERE ($1::text IS NULL OR a.tenant = $1) AND ($2::text IS NULL OR p.pool = $2)
  AND ($3::text IS NULL OR a.job_id = $3) AND ($4::bool OR a.released_at = 0)
  AND ($5::text IS NULL OR a.allocation_id > $5)
ORDER BY a.allocation_id LIMIT $6
"""

TENANTS = """
SELECT t.tenant, t.default_pool, t.weight, t.active, t.registered_at,
       COALESCE(u.gpu_ms, 0) AS gpu_ms, COALESCE(u.succeeded, 0) AS succeeded,
       COALESCE(u.failed, 0) AS failed, COALESCE(u.cancelled, 0) AS cancelled,
       COALESCE(u.preempted, 0) AS preempted
FROM tenant t LEFT JOIN usage_by_tenant u USING (tenant)
WHERE ($1::text IS NULL OR t.tenant = $1) AND ($2::text IS NULL OR t.tenant > $2)
ORDER BY t.tenant LIMIT $3
"""

QUOTAS = """
SELECT q.tenant, p.pool, q.guaranteed_gpus, q.borrow_gpus, q.spot_gpus
FROM quota q LEFT JOIN pool p ON p.partition = q.partition WHERE q.tenant = $1 ORDER BY p.pool
"""

POOLS = """
SELECT pool, partition, time_scale, settings FROM pool WHERE deleted_at = 0 ORDER BY pool
"""

POOL_USE = """
SELECT ARRAY(SELECT a.job_id FROM job_admission a LEFT JOIN job_placement p USING (job_id)
             WHERE a.partition = $1 AND a.state IN ('deferred', 'admitted')
               AND (p.phase IS NULL OR p.phase NOT IN ('succeeded', 'failed', 'cancelled'))
             LIMIT 1) AS jobs,
       ARRAY(SELECT node_id FROM node WHERE partition = $1 AND alive
             ORDER BY node_id LIMIT 1) AS nodes
"""

ENDPOINTS = """
SELECT e.endpoint, e.partition, e.settings, l.engines, l.noted_at, l.budgets_since
FROM endpoint e LEFT JOIN llm_endpoint l ON l.endpoint_id = e.partition || '/' || e.endpoint
WHERE e.deleted_at = 0 AND ($1::text IS NULL OR e.endpoint = $1) ORDER BY e.endpoint
"""

COMMAND = """
SELECT command_id, ledger, type, of, tenant, accepted, duplicate, reason, detail, at
FROM command WHERE ($1::text IS NULL OR tenant = $1) AND command_id = $2
"""

# Release 0.1 stored the reason of a quarantined input with the prefix `set aside: `.
DEAD_COLUMNS = """
SELECT dead_id, ledger, topic, partition, log_offset,
       regexp_replace(reason, '^set aside: ', '') AS reason, sha256, tenant, at, message_id,
       message_type, state, settled, decision, decision_reason, decided_at
FROM dead_letter WHERE topic <> '' AND ($1::text IS NULL OR tenant = $1)
"""
"""A row without topic is a decision on what was never quarantined, or is not projected yet."""

DEAD = (
    DEAD_COLUMNS
    + """
  AND ($2::bool OR NOT settled) AND ($3::bigint IS NULL OR (at, dead_id) < ($3, $4::text))
ORDER BY at DESC, dead_id DESC LIMIT $5
"""
)

DEAD_LETTER = DEAD_COLUMNS + " AND dead_id = $2"

FAULTS = """
SELECT f.fault_id, p.pool, f.job_id, f.tenant, f.node_id, f.allocation_id, f.slowdown, f.score,
       f.cause, f.part, f.lost_gpu_s, f.cost_gpu_s, f.avoided_gpu_s, f.state,
       f.reason, f.suspected_at, f.closed_at, n.health
FROM fault f LEFT JOIN pool p ON p.partition = f.partition LEFT JOIN node n USING (node_id)
WHERE ($1::text IS NULL OR f.tenant = $1) AND ($2::text IS NULL OR p.pool = $2)
  AND ($3::text IS NULL OR f.node_id = $3) AND ($4::text IS NULL OR f.state = $4)
  AND ($5::bigint IS NULL OR (f.suspected_at, f.fault_id) < ($5, $6::text))
ORDER BY f.suspected_at DESC, f.fault_id DESC LIMIT $7
"""

MITIGATION = """
SELECT p.pool, p.settings::json ->> 'mitigation' AS mitigation, m.is_open, m.plan_id, m.nodes,
       m.out_of_use, m.most, m.worker_strictness, m.job_strictness, f.*
FROM pool p LEFT JOIN mitigation m USING (partition) CROSS JOIN LATERAL (
  SELECT count(*) AS faults, count(*) FILTER (WHERE state = 'suspected') AS open,
         count(*) FILTER (WHERE state = 'false_alarm') AS false_alarms,
         coalesce(sum(lost_gpu_s) FILTER (WHERE state <> 'false_alarm'), 0) AS lost_gpu_s,
         coalesce(sum(cost_gpu_s), 0) AS cost_gpu_s,
         coalesce(sum(avoided_gpu_s) FILTER (WHERE state <> 'false_alarm'), 0) AS avoided_gpu_s
  FROM fault WHERE fault.partition = p.partition AND ($1::text IS NULL OR tenant = $1)) f
WHERE p.deleted_at = 0 AND ($2::text IS NULL OR p.pool = $2)
ORDER BY p.pool
"""

LANE_OF_FAULT = "SELECT partition FROM fault WHERE fault_id = $1"

AUDIT = """
SELECT entry_id, at, principal, action, object, whose, outcome, reason, requests
FROM audit WHERE ($1::text IS NULL OR principal = $1) AND ($2::text IS NULL OR action = $2)
  AND ($3::text IS NULL OR outcome = $3)
  AND ($4::bigint IS NULL OR (at, entry_id) < ($4, $5::text))
ORDER BY at DESC, entry_id DESC LIMIT $6
"""
