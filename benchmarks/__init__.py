"""Measurements that anyone can repeat: `berth bench NAME --json`; timings decide no test."""
