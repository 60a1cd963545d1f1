"""What happens to jobs and nodes between rounds."""
