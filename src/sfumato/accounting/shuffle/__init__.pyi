# What can be imported from this room, and the file that each name is imported from.

from sfumato.accounting.shuffle.bounds import Amplified as Amplified
from sfumato.accounting.shuffle.bounds import amplify as amplify
from sfumato.accounting.shuffle.bounds import assumption_of as assumption_of
from sfumato.accounting.shuffle.bounds import best as best
from sfumato.accounting.shuffle.chaff import Chaff as Chaff
from sfumato.accounting.shuffle.chaff import Chaffed as Chaffed
from sfumato.accounting.shuffle.chaffed_levels import ChaffedLevels as ChaffedLevels
from sfumato.accounting.shuffle.compose import BatchedReport as BatchedReport
from sfumato.accounting.shuffle.compose import composed as composed
from sfumato.accounting.shuffle.crowd import Crowd as Crowd
from sfumato.accounting.shuffle.inverse import Requirement as Requirement
from sfumato.accounting.shuffle.inverse import calibrated as calibrated
from sfumato.accounting.shuffle.inverse import holds as holds
from sfumato.accounting.shuffle.inverse import people_needed as people_needed
from sfumato.accounting.shuffle.levels import Levels as Levels
from sfumato.accounting.shuffle.named_bounds import BOUNDS as BOUNDS
from sfumato.accounting.shuffle.named_bounds import Hiding as Hiding
from sfumato.accounting.shuffle.named_bounds import HidingByMore as HidingByMore
from sfumato.accounting.shuffle.profile import delta_above as delta_above
from sfumato.accounting.shuffle.profile import delta_below as delta_below
from sfumato.accounting.shuffle.several_promises import together as together
from sfumato.accounting.shuffle.several_promises import told_of_all as told_of_all
from sfumato.accounting.shuffle.sizing import gaussian_parameter as gaussian_parameter
from sfumato.accounting.shuffle.sizing import screened_epsilon as screened_epsilon
from sfumato.accounting.shuffle.sizing import sized as sized
from sfumato.accounting.shuffle.sizing import tolerated as tolerated
