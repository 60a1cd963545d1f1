"""Which GPUs a job gets, and its life on them."""
