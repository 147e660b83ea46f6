"""Files in and files out: tables, reports, released streams, and streams that are followed.

Everything that is written here is complete or absent, whatever happens meanwhile; what cannot be
read is refused with one sentence. A file of this room is imported when a name of it is first asked
for, and with it pyarrow (``pip install 'sfumato[frames]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.extras import on_demand

if TYPE_CHECKING:
    from sfumato.files.columns import Kind, Table
    from sfumato.files.dialects import Dialect
    from sfumato.files.encoders import write_columns
    from sfumato.files.follower import Follower, follow
    from sfumato.files.published_files import Moved, Origin, publish_file
    from sfumato.files.released_files import read_released
    from sfumato.files.report_files import ReportFile, report_writer, rows_at_once
    from sfumato.files.several_streams import publish_several
    from sfumato.files.writing import (
        PICTURES,
        TABLES,
        complete_or_absent,
        folder_complete_or_absent,
        refuse_target,
        size_in_words,
    )

__all__ = [
    "PICTURES",
    "TABLES",
    "Dialect",
    "Follower",
    "Kind",
    "Moved",
    "Origin",
    "ReportFile",
    "Table",
    "complete_or_absent",
    "folder_complete_or_absent",
    "follow",
    "publish_file",
    "publish_several",
    "read_released",
    "refuse_target",
    "report_writer",
    "rows_at_once",
    "size_in_words",
    "write_columns",
]

__getattr__ = on_demand(
    __name__,
    {
        "columns": ("Kind", "Table"),
        "dialects": ("Dialect",),
        "encoders": ("write_columns",),
        "follower": ("Follower", "follow"),
        "released_files": ("read_released",),
        "published_files": ("Moved", "Origin", "publish_file"),
        "several_streams": ("publish_several",),
        "report_files": ("ReportFile", "report_writer", "rows_at_once"),
        "writing": (
            "PICTURES",
            "TABLES",
            "complete_or_absent",
            "folder_complete_or_absent",
            "refuse_target",
            "size_in_words",
        ),
    },
)
