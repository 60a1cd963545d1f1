"""Backend `kubernetes`: the API of a cluster, its watches, and the pods of gangs."""
