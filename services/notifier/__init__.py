"""Sends state changes of jobs to webhooks of tenants, and mails to users."""
