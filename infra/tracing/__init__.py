"""Traces in a browser without containers: Zipkin behind a small OTLP gateway."""
