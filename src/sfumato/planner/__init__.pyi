# What can be imported from this room, and the file that each name is imported from.

from sfumato.core.outlook import Expected as Expected
from sfumato.core.outlook import Option as Option
from sfumato.planner.capacity_model import capacity as capacity
from sfumato.planner.capacity_roles import Capacity as Capacity
from sfumato.planner.capacity_roles import Limit as Limit
from sfumato.planner.capacity_roles import Role as Role
from sfumato.planner.comparison import Candidate as Candidate
from sfumato.planner.comparison import answers as answers
from sfumato.planner.comparison import candidates as candidates
from sfumato.planner.comparison import compare as compare
from sfumato.planner.floors import least_error as least_error
from sfumato.planner.floors import least_move_error as least_move_error
from sfumato.planner.floors import least_shuffled_error as least_shuffled_error
from sfumato.planner.load import Load as Load
from sfumato.planner.plan_verdict import PlanVerdict as PlanVerdict
from sfumato.planner.planning import Plan as Plan
from sfumato.planner.planning import plan as plan
from sfumato.planner.question_templates import TEMPLATES as TEMPLATES
from sfumato.planner.question_templates import QuestionTemplate as QuestionTemplate
from sfumato.planner.question_templates import template_for as template_for
from sfumato.planner.shuffled import compare_shuffled as compare_shuffled
from sfumato.planner.unit_costs import UnitCosts as UnitCosts
from sfumato.planner.unit_costs import kept_units as kept_units
from sfumato.planner.unit_costs import units_file as units_file
from sfumato.streams.pilot import Pilot as Pilot
