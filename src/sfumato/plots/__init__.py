"""Pictures of answers, streams and experiments, as matplotlib figures.

A file of this room is imported when a name of it is first asked for, and with it matplotlib
(``pip install 'sfumato[plots]'``).
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
