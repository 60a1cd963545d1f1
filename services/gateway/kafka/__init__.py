"""The gateway on Kafka: records of tenants' topics become commands, and commands are appended."""
