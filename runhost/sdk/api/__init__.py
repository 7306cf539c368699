"""The parts of the runner's proxy, one module per subject of PROTOCOL 9."""
