from __future__ import annotations

import json
from pathlib import Path

from benchmarks.parts.schedulers.stage_dags import NETWORK, TUNED, measure, picks
from benchmarks.parts.schedulers.stage_dags_page import NAMES, stage_dags_section
from benchmarks.parts.schedulers.systems import STAGE_TESTS, judged_by

RESULTS = Path(__file__).parents[4] / "docs/results/schedulers.json"


def test_all_policies_see_the_same_jobs_and_a_run_repeats() -> None:
    own = measure(lambda _: None, seeds=[0, 1], jobs=8)
    again = measure(lambda _: None, seeds=[0, 1], jobs=8)
    assert own["rows"] == again["rows"]
    assert list(own["rows"]) == [name for name, _ in picks()] == list(NAMES)
    assert len(own["rows"][NETWORK]["jct_s"]["values"]) == 2
    assert own["ships"] in (NETWORK, TUNED)


def test_the_page_says_which_policy_is_to_be_taken() -> None:
    own = json.loads(RESULTS.read_text())["stage_dags"]
    for gain, ships, words in (
        ({"mean": 0.05, "low": 0.01, "high": 0.09}, NETWORK, "-5.0% (-9.0% to -1.0%). It is the"),
        ({"mean": -0.01, "low": -0.03, "high": 0.01}, TUNED, "+1.0% (-1.0% to +3.0%). That is no"),
    ):
        text = "".join(stage_dags_section(own | {"gain": gain, "ships": ships}))
        assert words in text


def test_the_tuned_heuristic_is_better_than_those_without_a_setting() -> None:
    rows = json.loads(RESULTS.read_text())["stage_dags"]["rows"]
    means = {name: row["jct_s"]["mean"] for name, row in rows.items() if name != NETWORK}
    assert min(means, key=lambda name: means[name]) == TUNED


def test_a_row_without_its_tests_says_so() -> None:
    own = judged_by(f"{STAGE_TESTS}/none")
    assert not own.within
    assert own.anchor.endswith(f"`{STAGE_TESTS}/none` are not here")
