"""Run the command line as ``python -m runhost.cli``."""

from runhost.cli import main

main(prog_name="runhost")
