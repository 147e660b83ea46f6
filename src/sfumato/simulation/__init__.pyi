# What can be imported from this room, and the file that each name is imported from.

from sfumato.simulation.driving import simulate as simulate
from sfumato.simulation.driving import steps as steps
from sfumato.simulation.made_up_lives import Synthetic as Synthetic
from sfumato.simulation.observed import Course as Course
from sfumato.simulation.observed import Observed as Observed
from sfumato.simulation.observed import observed_by as observed_by
from sfumato.simulation.outcome import Metrics as Metrics
from sfumato.simulation.outcome import Simulation as Simulation
from sfumato.simulation.populations import Recorded as Recorded
