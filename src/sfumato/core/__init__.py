"""The contracts: mechanisms, tallies, estimates and guarantees; this room needs only numpy.

Each name is imported when it is first used, because a device needs only a few of them.
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
