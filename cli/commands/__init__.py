"""The verbs of `berth`: one file per group of them."""
