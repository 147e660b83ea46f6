# What can be imported from this room, and the file that each name is imported from.

from sfumato.files.columns import Kind as Kind
from sfumato.files.columns import Table as Table
from sfumato.files.dialects import Dialect as Dialect
from sfumato.files.encoders import write_columns as write_columns
from sfumato.files.follower import Follower as Follower
from sfumato.files.follower import follow as follow
from sfumato.files.published_files import Moved as Moved
from sfumato.files.published_files import Origin as Origin
from sfumato.files.published_files import publish_file as publish_file
from sfumato.files.release_ledger import LEDGER as LEDGER
from sfumato.files.release_ledger import UNRECORDED as UNRECORDED
from sfumato.files.release_ledger import ReleaseLedger as ReleaseLedger
from sfumato.files.released_files import read_released as read_released
from sfumato.files.report_files import ReportFile as ReportFile
from sfumato.files.report_files import report_writer as report_writer
from sfumato.files.report_files import rows_at_once as rows_at_once
from sfumato.files.several_streams import publish_several as publish_several
from sfumato.files.time_axis import TimeAxis as TimeAxis
from sfumato.files.timed_files import publish_by_time as publish_by_time
from sfumato.files.timed_files import read_stream as read_stream
from sfumato.files.writing import PICTURES as PICTURES
from sfumato.files.writing import TABLES as TABLES
from sfumato.files.writing import complete_or_absent as complete_or_absent
from sfumato.files.writing import folder_complete_or_absent as folder_complete_or_absent
from sfumato.files.writing import refuse_target as refuse_target
from sfumato.files.writing import size_in_words as size_in_words
