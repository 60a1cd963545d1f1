"""Output of commands: tables, times, and reasons and failures in words."""
