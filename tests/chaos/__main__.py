"""`python -m tests.chaos --seeds N`: many stories and every sabotage, as one JSON object."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import replace

from tests.chaos.sabotage import RULES, without
from tests.chaos.story import Outcome, Plot, tell
from tests.chaos.test_sabotage import SEEDS, plot
from tests.chaos.test_simulation import CALM, HARSH


def stories(first: int, seeds: int, jobs: int) -> list[Outcome]:
    calm = tell(replace(CALM, jobs=jobs)).state
    outcomes: list[Outcome] = []
    for seed in range(first, first + seeds):
        outcome = tell(Plot(seed, jobs, faults=HARSH))
        if outcome.state != calm:
            outcome.wrong.append("the jobs did not end as in a calm world")
        outcomes.append(outcome)
        if outcome.wrong:
            sys.stderr.write(f"--first {seed} --seeds 1 --jobs {jobs}: {outcome.wrong[0]}\n")
    return outcomes


def figures(outcomes: list[Outcome], jobs: int) -> dict[str, object]:
    return {
        "seeds": len(outcomes),
        "jobs": jobs * len(outcomes),
        **{
            name: sum(getattr(outcome, name) for outcome in outcomes)
            for name in ("deaths", "freezes", "accidents", "ignored", "records")
        },
        "virtual_h": round(sum(outcome.virtual_s for outcome in outcomes) / 3600, 2),
        "wrong": [
            {"seed": outcome.seed, "what": outcome.wrong[:3]}
            for outcome in outcomes
            if outcome.wrong
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=CALM.jobs, help="in each story")
    parser.add_argument("--no-sabotage", action="store_true")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    report = figures(stories(arguments.first, arguments.seeds, arguments.jobs), arguments.jobs)
    rules = [] if arguments.no_sabotage else list(RULES)
    report["sabotage"] = {
        rule: any(tell(plot(seed), without(rule)).wrong for seed in SEEDS) for rule in rules
    }
    sys.stdout.write(json.dumps(report) + "\n")
    if report["wrong"] or not all(report["sabotage"].values()):  # type: ignore[attr-defined]
        sys.exit(1)


if __name__ == "__main__":
    main()
