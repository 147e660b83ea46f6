# What can be imported from this room, and the file that each name is imported from.

from sfumato.core.contrast import Contrast as Contrast
from sfumato.core.contrast import Contrasts as Contrasts
from sfumato.core.domain import Domain as Domain
from sfumato.core.estimate import Covariance as Covariance
from sfumato.core.estimate import Estimate as Estimate
from sfumato.core.estimate import FrequencyEstimate as FrequencyEstimate
from sfumato.core.guarantee import Guarantee as Guarantee
from sfumato.core.law import Law as Law
from sfumato.core.mechanism import Mechanism as Mechanism
from sfumato.core.tally import Tallies as Tallies
from sfumato.core.tally import Tally as Tally
