"""The agent's process: its files, its session with an executor, and the steps it supervises."""
