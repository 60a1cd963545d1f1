"""Parts of `berth bench year`."""
