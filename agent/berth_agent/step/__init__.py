"""The step: the process that owns one worker, and outlives the agent. It imports little."""
