"""Stand-in of the OpenTelemetry Collector: OTLP/HTTP in, OTLP/HTTP out to every exporter.

It reads the addresses from the collector's configuration. It has no pipelines and no memory
limiter; each exporter has a bounded queue, and overflow is counted and dropped.
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
    """Return (base address, CA file) of each OTLP/HTTP exporter."""
    exporters = (
        settings for name, settings in config["exporters"].items() if name.startswith("otlphttp")
    )
    return {exporter["endpoint"]: exporter.get("tls", {}).get("ca_file") for exporter in exporters}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    addresses = endpoints(yaml.safe_load(options.config.read_text()))
    exporters = [Forward(f"{url.rstrip('/')}/v1/traces", ca) for url, ca in addresses.items()]

    def take(body: bytes, kind: str, encoding: str) -> int:
        for exporter in exporters:
            exporter.put((body, kind, encoding))
        return 200

    sys.stderr.write(f"stand-in collector; forwarding spans to {', '.join(addresses)}\n")
    receiver(take, PORT, "").serve_forever()


if __name__ == "__main__":
    main()
