"""The fold of the placement ledger for nodes with an agent, and the orders that follow from it."""
