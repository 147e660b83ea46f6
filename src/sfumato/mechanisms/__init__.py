"""The mechanisms, one file each; a new one needs its file and its line in ``__init__.pyi``.

A file is imported when its mechanism is first used, so that a device does not import all of them.
The stub beside this file says in which file each mechanism is.
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
