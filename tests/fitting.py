"""How well counts agree with probabilities, and Python in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

__all__ = ["ALARM", "p_value", "python"]

ALARM: Final = 1e-9  # how often a right sampler may fail a test


def p_value(counts: NDArray[Any], probabilities: ArrayLike) -> float:
    """Return the p-value of Pearson's test; the rare outcomes share one cell."""
    expected = np.asarray(probabilities) * counts.sum()
    rare = expected < 20
    seen = np.append(counts[~rare], counts[rare].sum())
    mean = np.append(expected[~rare], expected[rare].sum())
    seen, mean = seen[mean > 0], mean[mean > 0]
    return float(chi2.sf(((seen - mean) ** 2 / mean).sum(), seen.size - 1))


def python(code: str, *words: str, options: Sequence[str] = ()) -> str:
    """Return what a new Python process prints when it runs this code."""
    command = [sys.executable, *options, "-c", code, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)  # noqa: S603
    return done.stdout
