"""Sessions of agents: orders down, and reports, heartbeats, output and telemetry up, over HTTP."""
