# What can be imported from this room, and the file that each name is imported from.

from sfumato.streams.published.periods import ReleasedByTime as ReleasedByTime
from sfumato.streams.published.publisher import Publisher as Publisher
from sfumato.streams.published.publishing_methods import METHODS as METHODS
from sfumato.streams.published.publishing_methods import plan as plan
from sfumato.streams.published.publishing_methods import plan_periods as plan_periods
from sfumato.streams.published.publishing_plan import PublishingPlan as PublishingPlan
from sfumato.streams.published.ranges import RangeAnswer as RangeAnswer
from sfumato.streams.published.ranges import Released as Released
from sfumato.streams.published.topl import ToPL as ToPL
from sfumato.streams.published.topl_curator import PeriodSums as PeriodSums
