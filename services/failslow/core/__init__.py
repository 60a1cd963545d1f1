"""The pure part of fail-slow."""
