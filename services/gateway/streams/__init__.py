"""Streams to clients: events, output lines and terminals."""
