"""HTTP and WebSockets to a server that may be slow, wrong or hostile."""
