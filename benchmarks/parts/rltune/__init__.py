"""RLTune as its authors released it: features, network, PPO, protocol and allocation."""
