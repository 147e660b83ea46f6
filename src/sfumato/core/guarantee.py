"""What is promised, to whom, and under which assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Literal

__all__ = ["Guarantee", "rounded_up"]

_MODELS = {
    "local": "blurred on the device before anyone sees it",
    "shuffle": "blurred on the device and mixed with others by a shuffler",
    "central": "blurred by a trusted curator before it is published",
}


@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy promise in a form that can be printed with every number.

    Parameters
    ----------
    model
        Who has to be trusted: nobody (local), a shuffler, or a curator (central).
    unit
        What is protected, as a noun phrase: "one report", "a device's whole stream", "one event".
    epsilon, delta
        Neighbouring inputs change the probability of any output by at most a factor e^epsilon,
        up to delta.
    neighbours
        How neighbouring inputs differ.
    window
        The number of consecutive periods the promise covers, if it is a window.
    assumptions
        What must hold for the promise to hold, each a short clause.
    rho
        The zCDP of what is published, if it is known; it adds up over several releases.

    Examples
    --------
    >>> print(Guarantee("local", "each report", 1.0))
    Each report is protected with epsilon 1 (local: blurred on the device before anyone sees it).

    """

    model: Literal["local", "shuffle", "central"]
    unit: str
    epsilon: float
    delta: float = 0.0
    neighbours: str = "any two values"
    window: int | None = None
    assumptions: tuple[str, ...] = ()
    rho: float | None = None

    @classmethod
    def of_stream(cls, periods: int, epsilon: float) -> Guarantee:
        """Return the promise to a device that takes part in a horizon of periods once."""
        return cls(
            "local",
            f"a device's whole stream of {periods} periods",
            epsilon,
            neighbours="any two streams",
            assumptions=("the device takes part in this horizon once",),
        )

    @property
    def promise(self) -> str:
        """What the epsilon that a device pays covers, in words: all it ever sends, or a window."""
        if self.window is None:
            return "for everything it will ever send"
        if self.window == 1:
            return "for what it sends in any one period"
        return f"for what it sends in any {self.window} consecutive periods"

    def __str__(self) -> str:
        strength = f"epsilon {rounded_up(self.epsilon, 6)}"
        if self.delta:
            strength += f", delta {rounded_up(self.delta, 3)}"
        if self.rho is not None:
            strength += f" and zCDP rho {rounded_up(self.rho, 3)}"
        within = f" over any {self.window} consecutive periods" if self.window else ""
        if self.window == 1:
            within = " in any one period"
        sentence = (
            f"{self.unit[:1].upper()}{self.unit[1:]} is protected with {strength}{within} "
            f"({self.model}: {_MODELS[self.model]})"
        )
        if self.assumptions:
            sentence += ", provided that " + " and ".join(self.assumptions)
        return sentence + "."


def rounded_up(bound: float, digits: int) -> str:
    """Return a bound as text with ``digits`` significant digits, rounded up."""
    shown = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(bound)))
    return f"{float(shown):.{digits}g}"
