"""Hosts of lanes: they spread them over processes, and deliver and watch their inputs."""
