"""Bearer tokens of an OIDC provider: verified by its keys, mapped to roles by configured claims."""
