"""Rules of the agent without clock, file or network: `docs/agent.md` names each."""
