"""What is asked of estimates: everything here is post-processing and costs no privacy."""

from __future__ import annotations

from sfumato.queries.postprocess import (
    Processed,
    capped_simplex,
    clip,
    norm_sub,
    postprocess,
    simplex,
)

__all__ = ["Processed", "capped_simplex", "clip", "norm_sub", "postprocess", "simplex"]
