"""`python -m tests.chaos --seeds N`: many stories and every sabotage, as one JSON object."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import replace

from tests.chaos.sabotage import RULES, without
from tests.chaos.story import Plot, Told, tell
from tests.chaos.test_sabotage import SEEDS, plot
from tests.chaos.test_simulation import CALM, HARSH


def stories(first: int, seeds: int, jobs: int) -> list[Told]:
    calm, told = tell(replace(CALM, jobs=jobs)).state, []
    for seed in range(first, first + seeds):
        story = tell(Plot(seed, jobs, faults=HARSH))
        if story.state != calm:
            story.wrong.append("the jobs did not end as in a calm world")
        told.append(story)
        if story.wrong:
            sys.stderr.write(f"--first {seed} --seeds 1 --jobs {jobs}: {story.wrong[0]}\n")
    return told


def figures(told: list[Told], jobs: int) -> dict[str, object]:
    return {
        "seeds": len(told),
        "jobs": jobs * len(told),
        **{
            name: sum(getattr(each, name) for each in told)
            for name in ("deaths", "freezes", "accidents", "ignored", "records")
        },
        "virtual_h": round(sum(each.virtual_s for each in told) / 3600, 2),
        "wrong": [{"seed": each.seed, "what": each.wrong[:3]} for each in told if each.wrong],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=CALM.jobs, help="in each story")
    parser.add_argument("--no-sabotage", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = figures(stories(given.first, given.seeds, given.jobs), given.jobs)
    rules = [] if given.no_sabotage else list(RULES)
    found["sabotage"] = {
        rule: any(tell(plot(seed), without(rule)).wrong for seed in SEEDS) for rule in rules
    }
    sys.stdout.write(json.dumps(found) + "\n")
    if found["wrong"] or not all(found["sabotage"].values()):  # type: ignore[attr-defined]
        sys.exit(1)


if __name__ == "__main__":
    main()
