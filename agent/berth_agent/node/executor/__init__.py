"""The exchange with an executor: orders, reports, output and terminals."""
