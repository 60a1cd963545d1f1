"""The pure part of the throttle."""
