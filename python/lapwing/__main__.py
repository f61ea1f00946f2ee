"""The program ``lapwing``: what ``pip install`` puts on the path, and ``python -m lapwing``."""

import signal
import sys

from ._lapwing import program


def main() -> None:
    """Runs the program with the words of the command line."""
    # It saves its work and ends on Ctrl-C by itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(program(["lapwing", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
