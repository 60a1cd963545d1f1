"""Parts of `berth bench flood`."""
