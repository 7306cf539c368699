"""What workflows do in the world: one class per concern, dependencies in the constructor."""
