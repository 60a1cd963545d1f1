"""Schedules of pipeline-parallel training: their order, time and memory. Pure."""
