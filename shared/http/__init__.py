"""HTTP servers: their bodies, connections, rates, addresses and certificates."""
