"""Parts of `berth bench isolation`."""
