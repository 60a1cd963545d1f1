"""Parts of `berth bench adapters`."""
