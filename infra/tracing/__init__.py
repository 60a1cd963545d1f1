"""Traces in a browser without containers: Zipkin behind a small OTLP gateway of our own."""
