"""Parts of `berth bench throttle`."""
