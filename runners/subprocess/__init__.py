"""Runners that are programs of their own: started, spoken with, and ended with all they started."""
