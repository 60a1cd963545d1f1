"""Simulated agents: real HTTP sessions from processes of their own, without steps."""
