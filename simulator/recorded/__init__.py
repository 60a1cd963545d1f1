"""The recorded past of a pool as a workload: read from its ledger, simulated under any policies."""
