"""How fast the mechanisms are, as multiples of what counting without privacy costs."""

from __future__ import annotations

import os

# One process, one thread: set before numpy is first imported, and inherited by fresh processes.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
