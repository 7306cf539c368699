"""One workflow per file. They decide and wait; everything that touches the world is an activity."""
