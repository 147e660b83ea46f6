"""`python -m sfumato` is `sfumato`."""

from __future__ import annotations

from sfumato.cli import main

if __name__ == "__main__":
    main()
