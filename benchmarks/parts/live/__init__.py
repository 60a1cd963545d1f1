"""A day of a trace on a running stack, beside the same day in the simulators."""
