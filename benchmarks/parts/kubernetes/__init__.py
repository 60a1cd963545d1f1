"""Parts of the comparison with the scheduler of Kubernetes."""
