"""Parts of `berth bench engine`."""
