"""Codes of policies, modes and states, and the constants of RULES.md."""

from __future__ import annotations

from services.priority.core.learned.features import CONTEXT_S

FCFS, SMALLEST, SJF, SAF, F1, WFP3, UNICEP, MULTIFACTOR, LAS, SRTF, SRSF, GITTINS, LEARNED = range(
    13
)
"""Up to F1 a key is constant; up to MULTIFACTOR it changes with the wait; then with service."""
STRICT, SKIP, EASY = range(3)
FUTURE, WAITING, RUNNING, DONE = range(4)

NEVER = 1 << 62
"""A time in ms that never comes."""
SETTLE_MS = 1
MAX_SETTLE_MS = 10
"""Rule 2."""
EVICTIONS_PER_ROUND = 8
SEARCHES_PER_ROUND = 32
"""Rule 8."""
DEFRAGMENTATIONS_PER_ROUND = 2
DEFRAGMENTATION_TRIES_PER_ROUND = 8
MAX_MIGRATIONS = 16
LEAST_SHARE = 2
"""Rule 13; as in `services.placement.core.round.defragment`."""
LARGE_THRESHOLD = 0.1
"""Share of recent jobs that are large, from which rank stops none of them (rule 12)."""
LARGE_RECENT = 100.0
"""Arrivals after which one counts 1/e in that share."""

JOB_FEATURES, CONTEXT_FEATURES = 8, 4
INPUTS = JOB_FEATURES + CONTEXT_FEATURES
PER_HIDDEN = INPUTS + 2
"""Weights of one hidden unit: its inputs, its bias, its output."""
SCORED_MS, DRAW, COLUMNS = INPUTS, INPUTS + 1, INPUTS + 2
"""Columns of a decision that exploration records: first the inputs of the network."""
LEAST_GPUS = 0.01
HOUR_MS = 3_600_000
"""Unit of the figures of use that an outcome has by the hour."""
CONTEXT_MS = int(CONTEXT_S * 1000)
