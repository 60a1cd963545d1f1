"""Stand-in of the OpenTelemetry Collector: OTLP/HTTP in, OTLP/HTTP out to every exporter.

It reads the collector's own configuration for the addresses. It has no pipelines and no memory
limiter; each exporter has a bounded queue. What does not fit, or is refused, is counted and lost.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from infra.tracing.forward import Forward
from infra.tracing.otlp_http import receiver

PORT = 4318


def endpoints(config: dict[str, Any]) -> dict[str, str | None]:
    """Base addresses of the exporters that speak OTLP/HTTP, and whom each of them trusts."""
    exporters = config["exporters"].items()
    found = [each for name, each in exporters if name.startswith("otlphttp")]
    return {each["endpoint"]: each.get("tls", {}).get("ca_file") for each in found}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    found = endpoints(yaml.safe_load(options.config.read_text()))
    exporters = [Forward(f"{url.rstrip('/')}/v1/traces", ca) for url, ca in found.items()]

    def take(body: bytes, kind: str, encoding: str) -> int:
        for exporter in exporters:
            exporter.put((body, kind, encoding))
        return 200

    sys.stderr.write(f"stand-in collector; spans go on to {', '.join(found)}\n")
    receiver(take, PORT, "").serve_forever()


if __name__ == "__main__":
    main()
