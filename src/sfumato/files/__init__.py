"""Files in and files out: tables, reports, released streams, and streams that are followed.

Everything that is written here is complete or absent, whatever happens meanwhile; what cannot be
read is refused with one sentence. A file of this room is imported when a name of it is first asked
for, and with it pyarrow (``pip install 'sfumato[frames]'``).
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
