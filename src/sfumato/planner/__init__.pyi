# What can be imported from this room, and the file that each name is imported from.

from sfumato.core.outlook import Expected as Expected
from sfumato.core.outlook import Option as Option
from sfumato.planner.comparison import Candidate as Candidate
from sfumato.planner.comparison import answers as answers
from sfumato.planner.comparison import candidates as candidates
from sfumato.planner.comparison import compare as compare
from sfumato.planner.floors import least_error as least_error
from sfumato.planner.floors import least_shuffled_error as least_shuffled_error
from sfumato.planner.plan_verdict import PlanVerdict as PlanVerdict
from sfumato.planner.planning import Plan as Plan
from sfumato.planner.planning import plan as plan
from sfumato.planner.question_templates import TEMPLATES as TEMPLATES
from sfumato.planner.question_templates import QuestionTemplate as QuestionTemplate
from sfumato.planner.question_templates import template_for as template_for
from sfumato.planner.shuffled import compare_shuffled as compare_shuffled
from sfumato.streams.pilot import Pilot as Pilot
