"""The text of a what-if."""

from __future__ import annotations

from typing import Any

from cli.text.what_if import notes, policy_table, tenant_table

CHANGE = {"gain": -0.5, "interval": [-0.75, 0.25]}
ERRORS = {
    "recorded_mean_s": 100.0,
    "replayed_mean_s": 90.0,
    "change": {"gain": -0.1, "interval": None},
    "mean_error_s": -10.0,
    "mean_absolute_error_s": 12.0,
    "p90_absolute_error_s": 40.0,
    "close_share": 0.975,
}
DOCUMENT: dict[str, Any] = {
    "pool": "gpu",
    "from_at": 1_800_000_000_000,
    "to_at": 1_800_003_600_000,
    "begin_at": 1_799_996_400_000,
    "mean_gpus": 16.0,
    "jobs": {
        "counted": 40,
        "replayed": 70,
        "carried": 3,
        "cut_short": 2,
        "retried": 1,
        "left_out": {"still running": 4},
    },
    "policy_changes": 1,
    "fidelity": {"first_wait": ERRORS, "wait": ERRORS},
    "rows": [
        {
            "name": "las",
            "mean_wait_s": 1234.5,
            "wait_interval": [1000.0, 2000.0],
            "p99_wait_s": 9000.0,
            "mean_jct_s": 5000.0,
            "jct_interval": None,
            "use": None,
            "jain": 0.5,
            "worst_rho": None,
            "stops": 7,
            "lost_share": 0.01,
            "wait_change": CHANGE,
            "jct_change": {"gain": None, "interval": None},
            "tenants": [
                {
                    "tenant": "ada",
                    "jobs": 40,
                    "mean_wait_s": 1234.5,
                    "mean_jct_s": 5000.0,
                    "rho": 1.25,
                    "stops": 7,
                    "wait_change": None,
                }
            ],
        }
    ],
    "shadows": [
        {"policy": "las", "orders": 12, "agreement": 0.456, "refused": 0},
        {"policy": "rounds:gavel", "orders": 9, "agreement": 0.754, "refused": 2},
    ],
    "left_out": {"fair_share": "orders as fcfs does"},
}


def test_notes_say_how_far_the_replay_is_to_be_believed() -> None:
    text = list(notes(DOCUMENT))
    assert text[0].startswith("gpu: 40 jobs arrived from 2027-01-15 08:00:00 to 2027-01-15 09:00")
    assert text[1] == (
        "fidelity of first waits: recorded 100.0 s, replayed 90.0 s (-10.0% [unknown]); by job"
        " 12.0 s off on average, 40.0 s at p90, 98% within a minute"
    )
    assert "not counted: 4 still running" in text
    assert "2 counted jobs were cancelled: they run as long as they did" in text
    assert any(line.startswith("shadow las: 12 recorded orders") for line in text)
    (proposed,) = [line for line in text if line.startswith("shadow rounds:gavel: 9 recorded")]
    assert "75% of the GPUs" in proposed and proposed.endswith("; 2 broke a rule or did not come")
    assert text[-1] == "not tried: fair_share: orders as fcfs does"


def test_tables_have_intervals_and_dashes_for_the_unknown() -> None:
    _, (row,) = policy_table(DOCUMENT)
    assert row[:8] == (
        "las",
        "1,234.5 [1,000.0, 2,000.0]",
        "9,000.0",
        "5,000.0 [unknown]",
        "-",
        "0.50",
        "-",
        7,
    )
    assert row[9:] == ("-50.0% [-75.0%, +25.0%]", "unknown")
    _, (tenant,) = tenant_table(DOCUMENT)
    assert tenant == ("las", "ada", 40, "1,234.5", "5,000.0", "1.25", 7, "")
