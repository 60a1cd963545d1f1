"""Parts of `berth bench failslow`."""
