"""`python -m infra.prometheus`: print a Prometheus configuration for a stack of `berth up`.

python -m infra.prometheus .berth > prometheus.yml && prometheus --config.file=prometheus.yml
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from infra.supervisor.running import RunningStack, load

FOLDER = Path(__file__).parent


def local(stack: RunningStack, every_s: int = 5) -> dict[str, Any]:
    """Return the configuration of the containers with the ports of this machine."""
    config: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": f"{every_s}s", "evaluation_interval": f"{every_s}s"}
    config["rule_files"] = [str(FOLDER / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"] = [
        {"targets": [f"127.0.0.1:{ports['metrics']}"], "labels": {"service": name}}
        for name, ports in stack.ports.items()
        if "metrics" in ports
    ]
    return config


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.prometheus", description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path(".berth"))
    config = local(load(parser.parse_args().data.resolve()))
    sys.stdout.write(yaml.safe_dump(config, sort_keys=False))


if __name__ == "__main__":
    main()
