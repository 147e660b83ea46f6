# What can be imported from this room, and the file that each name is imported from.

from sfumato.checks.mechanism_checks import MECHANISM_CHECKS as MECHANISM_CHECKS
from sfumato.checks.mechanism_checks import check_mechanism as check_mechanism
from sfumato.checks.noise_checks import NOISE_CHECKS as NOISE_CHECKS
from sfumato.checks.noise_checks import check_noise as check_noise
from sfumato.checks.stream_checks import STREAM_CHECKS as STREAM_CHECKS
from sfumato.checks.stream_checks import check_stream as check_stream
from sfumato.checks.verdict import CheckFailed as CheckFailed
from sfumato.checks.verdict import Verdict as Verdict
