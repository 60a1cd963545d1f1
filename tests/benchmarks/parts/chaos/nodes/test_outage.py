"""A control plane on a durable broker is killed and comes back; no worker on a node notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.parts.chaos import node_figures
from benchmarks.parts.chaos.nodes.outage import longest_gap_s, outage, terms_of
from benchmarks.parts.chaos.options import ChaosOptions
from infra.broker import kafka

SESSIONS = 200


def test_long_outages_are_those_of_the_default_settings() -> None:
    assert terms_of(480.0) == {}
    assert terms_of(12.0)["stop_after_s"] == 300.0
    assert terms_of(12.0, sessions=9) == {"stop_after_s": 300.0}


def test_the_longest_gap_is_that_of_one_worker_on_one_gpu(tmp_path: Path) -> None:
    (tmp_path / "n1.0").write_text(
        lines("1000 {} a 1 0 0 n1", "1500 {} a 1 0 0 n1", "9000 {} b 1 0 0 n1")
    )
    (tmp_path / "n1.1").write_text(lines("1000 {} a 1 0 1 n1", "1700 {} a 1 0 1 n1"))
    assert longest_gap_s(tmp_path) == 0.7


def lines(*texts: str) -> str:
    """Return lines of workers, whose wall clock does not matter here."""
    return "".join(f"{text}\n".format("5000 tick") for text in texts)


@pytest.mark.parts
@pytest.mark.stack
@pytest.mark.kafka
@pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there")
async def test_no_worker_notices_that_everything_else_was_killed() -> None:
    options = ChaosOptions(outage_s=12.0, agents=3, sessions=SESSIONS)
    figures = await outage(options, lambda line: None)
    zeros = (*node_figures.ZEROS, "nodes_fenced", "sessions_fenced")
    assert {name: figures[name] for name in zeros} == dict.fromkeys(zeros, 0), figures
    assert (figures["attempts"], figures["verify"]) == (figures["jobs"], "ok")
    assert figures["sessions_back"] == SESSIONS
