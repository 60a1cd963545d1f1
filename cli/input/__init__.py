"""Input of commands: arguments and flags that several share, and the job file."""
