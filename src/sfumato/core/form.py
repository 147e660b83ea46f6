"""How the payloads of one place are judged and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.errors import ReportError

__all__ = ["Form"]


@dataclass(frozen=True)
class Form:
    """How the payloads of one place are validated and counted."""

    dtype: np.dtype[Any]
    """The numpy dtype of a payload without its padding."""
    valid: Callable[[Array], Bools]
    """Returns a mask of the payloads that a device can have sent."""
    counted: Callable[[Array], Tally]
    """Returns the tally of payloads that have already been found valid."""

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return the form of a mechanism's reports."""
        return cls(mechanism.report_dtype, mechanism.valid, mechanism.counted)

    def tally(self, payloads: Array) -> Tally:
        """Return the tally of payloads; raise ReportError if one of them is not valid."""
        judged = self.valid(payloads)
        if not judged.all():
            raise ReportError(
                f"payloads[{int(np.argmin(judged))}] is {payloads[int(np.argmin(judged))]}; no "
                "device sends that."
            )
        return self.counted(payloads)

    def read(self, payloads: NDArray[np.uint8]) -> Array:
        """Return rows of bytes as payloads, without their padding."""
        cut = np.ascontiguousarray(payloads[:, : self.dtype.itemsize])
        return cut.reshape(-1).view(self.dtype)
