"""Ray in the words of the contract of engines: what it shows, and the jobs that it is given."""
