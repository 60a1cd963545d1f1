"""A queue of batch jobs on equal processors, without preemption: the world of RLScheduler."""
