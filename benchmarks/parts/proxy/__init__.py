"""Parts of `berth bench proxy`."""
