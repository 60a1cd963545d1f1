"""Three real programs for the two local slots: a single job, a gang, and one retry."""

from __future__ import annotations

from cli.demo.options import LOCAL_POOL, TENANTS
from cli.replay.submission import Submission

SAY = 'echo "rank $BERTH_RANK of $BERTH_WORLD_SIZE, GPU $CUDA_VISIBLE_DEVICES"; sleep 1'
MEET = 'echo "rank $BERTH_RANK meets at $MASTER_ADDR:$MASTER_PORT"; sleep 1'
SECOND_TIME = 'echo "attempt $BERTH_ATTEMPT"; test "$BERTH_ATTEMPT" -gt 1'


def local_jobs(run: str) -> list[Submission]:
    return [
        _job(run, TENANTS[0], "hello", SAY, {}),
        _job(run, TENANTS[1], "gang-of-two", MEET, {"gang": {"workers": 2}}),
        _job(
            run,
            TENANTS[2],
            "fails-once",
            SECOND_TIME,
            {"retry": {"max_attempts": 2, "backoff_s": 0.5, "avoid_failed_node": False}},
        ),
    ]


def _job(run: str, tenant: str, name: str, script: str, more: dict[str, object]) -> Submission:
    spec: dict[str, object] = {"name": name, "user": "demo", "command": ["/bin/sh", "-c", script]}
    return Submission(tenant, LOCAL_POOL, f"{run}/{name}", spec | more)
