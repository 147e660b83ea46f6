"""The shares of levels that the papers print, by name.

They minimise a bound with terms c / W by setting W proportional to c, although the minimum is at
the square root of c. They are here for comparison; see :mod:`~.mix` for the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sfumato.errors import ConfigurationError

__all__ = ["PRINTED", "printed_shares"]


def _calibrated(span: int, periods: int, fan_out: int) -> float:
    reach = (fan_out - 1) * span
    steps = reach * (reach + 1) * (2 * reach + 1) / (6 * reach**2)
    return (periods - fan_out * span + steps) * span


PRINTED: Final[Mapping[str, Callable[[int, int, int], float]]] = {
    "uniform": lambda _span, _periods, _fan_out: 1.0,
    "prefix": lambda span, periods, _fan_out: float(span * (periods - span)),
    "ranges": lambda span, _periods, _fan_out: float(span),
    "calibrated": _calibrated,
}
"""The weight of a level's share, from its span, the number of periods and the fan-out."""


def printed_shares(name: str, spans: Sequence[int], periods: int, fan_out: int) -> list[float]:
    """Return the shares that the papers print for a workload.

    A level whose printed share is not positive (sometimes the top one) gets none.

    Examples
    --------
    >>> [round(share, 3) for share in printed_shares("prefix", [1, 2, 4, 8], 8, 2)]
    [0.2, 0.343, 0.457, 0.0]

    """
    if name not in PRINTED:
        raise ConfigurationError(f"shares is {name!r}; {', '.join(PRINTED)} are printed.")
    weights = [max(PRINTED[name](span, periods, fan_out), 0.0) for span in spans]
    return [weight / sum(weights) for weight in weights]
