"""Parts of `berth bench compare`."""
