"""Parts of `berth bench soak`."""
