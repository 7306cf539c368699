"""Programs around runhost, each runnable from the checkout."""
