"""What of a stream's reports can be doubted: the part of its contract that judges honesty."""

from __future__ import annotations

from sfumato.core.curator import Ask
from sfumato.core.doubt import Doubt
from sfumato.core.stream_design import StreamDesign
from sfumato.core.tally import Place, Tally

__all__ = ["StreamDoubts"]


class StreamDoubts(StreamDesign):
    """The part of a stream that says what honest devices send."""

    def doubt(self, place: Place, tally: Tally, ask: Ask | None = None) -> Doubt | None:
        """Return how improbable a tally is if all devices are honest; None if nothing bounds it.

        Parameters
        ----------
        place, tally
            The place of some reports, and their tally. In the place of enrolments, it is the number
            of all devices that have enrolled by then, and as its sum the number of reports.
        ask
            The question that they answer, if devices are asked.

        """
        del place, tally, ask
        return None

    def reports_once(self, place: Place) -> bool:
        """Return whether a device sends one report to all places of a span and part together."""
        del place
        return False
