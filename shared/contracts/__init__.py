"""The only thing services share with each other and with integrators: messages and topics."""
