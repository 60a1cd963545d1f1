"""The agent of a node: it runs the workers that the control plane orders. Standard library only."""

VERSION = "0.1.0"
