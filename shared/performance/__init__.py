"""Work per second of a job on an allocation: by type, number and spread of GPUs, and restarts.

All functions are pure, and the same for simulations and live pools. A rate is in units of work per
second, where the unit is the job's own (steps, samples, examples at the first batch size). What was
not measured is None: a policy has to work without it.
"""
