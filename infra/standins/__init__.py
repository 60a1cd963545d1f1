"""Stand-ins for base images, built if no image registry is reachable; see `build.py`."""
