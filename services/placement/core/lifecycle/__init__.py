"""The life of jobs, gangs and nodes, decided from single inputs."""
