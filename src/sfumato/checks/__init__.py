"""The checks of mechanisms, central noise and streams, as public functions.

>>> from sfumato import GRR
>>> from sfumato.checks import check_mechanism
>>> check_mechanism(GRR(1.0, 3)).ok
True
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
