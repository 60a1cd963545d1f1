"""Parts of `berth bench engines`."""
