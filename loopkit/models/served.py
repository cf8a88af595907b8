"""The process that `loopkit.models.serving` starts.

`python -m loopkit.models.served SLOTS` prints the address it listens at (loopback), and ends when its standard input does.
"""

import os
import sys

from loopkit.models.embedded import EmbeddedModel


def main() -> None:
    """Load, tell the address, wait."""
    server = EmbeddedModel(slots=int(sys.argv[1])).server()
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # llama.cpp takes its time to take its threads down


if __name__ == "__main__":
    main()
