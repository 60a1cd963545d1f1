"""Parts of `berth bench retraining`."""
