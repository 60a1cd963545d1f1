"""What a schedule was worth: pure functions over arrays of jobs, and how sure a difference is."""
