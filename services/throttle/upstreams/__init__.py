"""The client side of the proxy: which engine serves a request, and what if it does not."""
