"""Stand-ins for the base images, built where no image registry answers; see `build.py`."""
