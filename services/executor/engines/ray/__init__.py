"""The shell of Ray: its dashboard, and the folder that its nodes share with the executor."""
