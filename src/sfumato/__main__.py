"""`python -m sfumato` is `sfumato`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from sfumato.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
