"""The benchmark: ``./run bench --help`` says what it measures."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import limits, peers
from benchmarks.families import instances
from benchmarks.measure import Row, measure, measure_peer
from benchmarks.results import Results
from benchmarks.stream import Streamed, stream
from sfumato import OLH, catalog
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.planner import UnitCosts, kept_units, units_file

SIZES = [128, 1024]
STREAM_N, STREAM_SIZE = 10_000_000, 1024

ABOUT = f"""\
Speed of the mechanisms, in people per second and in multiples of counting without privacy:
np.bincount of as many uniform 64-bit symbols, the best of 5 in the same run. All times are
processor time of one process with one thread.

client      randomize, with secure randomness
server      tally and estimate
end to end  both; the best of 3
bytes       of one report
memory      peak resident memory beyond the imports, in a fresh process that streams batches

--units measures what a report costs this machine, piece by piece, and keeps it for
`sfumato plan --capacity`; --capacity runs collectors, a shuffler and a database, and compares
their processor time with what the plan says. Leave the machine alone for both (3 minutes).

Peers are installed from PyPI for the time of the run; they take one person at a time and are
slow, so they run n = {peers.PEOPLE:,}, and their ratios are per person.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.units or given.capacity:
        return _on_this_machine(given)
    chosen, left_out = _chosen(given)
    if left_out and (given.names or not chosen):
        parser.error(left_out[0])
    rows = [*_rows(given, chosen)]
    streamed = _stream(given) if given.stream else None
    results = Results(given.n, given.epsilon, rows, streamed, left_out)
    if given.json:
        print(json.dumps(results.document(), indent=2))
    else:
        results.show()
    return 1 if given.check and not results.limits_hold else 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="./run bench", description=ABOUT, formatter_class=RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"of {', '.join(catalog.names())}; default: all")
    add("--n", type=_at_least(1), default=limits.CLAIMED_N, help="people; default %(default)s")
    add("--domain", type=_at_least(2), action="append", metavar="D", help=f"default: {SIZES}")
    add("--epsilon", type=float, default=limits.CLAIMED_EPSILON, help="default %(default)s")
    add("--peers", action="store_true", help=f"also run {' and '.join(peers.PEERS)}")
    add("--stream", action="store_true", help=f"also stream {STREAM_N:,} people through olh")
    add("--check", action="store_true", help="exit with 1 unless the limits that we claim hold")
    add("--json", action="store_true", help="print nothing but JSON")
    add("--units", action="store_true", help="measure what a report costs this machine")
    add("--write", metavar="FILE", help=f"where unit costs are kept; default {units_file()}")
    add("--capacity", action="store_true", help="compare three runs with what the plan says")
    add("--costs", metavar="FILE", help="unit costs to compare with; default: those kept")
    add("--share", type=float, default=1.0, help="of the usual load; smaller ones are for tests")
    return parser


def _on_this_machine(given: Namespace) -> int:
    """Measure the unit costs of this machine, or compare them with runs."""
    from benchmarks import capacity, units  # noqa: PLC0415 -- others need no servers

    if given.units:
        path = Path(given.write) if given.write else units_file()
        measured = units.measure(_say, given.share)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(measured.encode(), "utf-8")
        text = measured.encode().rstrip() if given.json else "\n".join(units.lines(measured))
        print(text if given.json else f"{text}\nWritten: {path}")
    if not given.capacity:
        return 0
    costs = UnitCosts.read(given.costs) if given.costs else kept_units()
    found = list(capacity.compared(costs, _say, given.share))
    if given.json:
        print(json.dumps([each.record() for each in found], indent=2))
    else:
        print(f"Unit costs: {costs.sentence()}\n" + "\n".join(capacity.lines(found)))
    return 1 if given.check and not all(each.holds for each in found) else 0


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if (found := int(text)) < least:
            raise ArgumentTypeError(f"{found} is too small; {least} or more is expected")
        return found

    return number


def _chosen(given: Namespace) -> tuple[list[Mechanism], list[str]]:
    """Return the mechanisms to measure, and why others cannot be."""
    chosen, left_out = [], []
    for name in given.names or catalog.names():
        try:
            chosen += instances(name, given.epsilon, given.domain or SIZES)
        except ConfigurationError as error:
            left_out.append(f"{name}: {error}")
    return chosen, left_out


def _rows(given: Namespace, chosen: Sequence[Mechanism]) -> Iterator[Row]:
    ours = []
    for place, mechanism in enumerate(chosen, start=1):
        _say(f"{place}/{len(chosen)} {mechanism}, n = {given.n:,}")
        ours.append(measure(mechanism, given.n))
        yield ours[-1]
    shared = [row for row in ours if row.mechanism in peers.MECHANISMS]
    for peer in peers.PEERS if given.peers else ():
        _say(f"installing {peer}")
        with peers.installed(peer) as environment:
            for place, row in enumerate(shared, start=1):
                _say(f"{place}/{len(shared)} {peer}: {row.mechanism}, {row.symbols} items")
                yield measure_peer(environment, row, given.epsilon)


def _stream(given: Namespace) -> Streamed:
    _say(f"streaming {STREAM_N:,} people")
    return stream(OLH(given.epsilon, STREAM_SIZE), STREAM_N)


def _say(progress: str) -> None:
    """Tell somebody who waits at a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"bench: {progress}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
