"""Runners: how they are found, started, read and stopped, and the official ones."""
