"""Verification of a certificate of `sfumato check`, independent of the code that wrote it.

    python -m sfumato.checks.verify certificate.json

From sfumato it only uses the certified objects: mechanisms, noise and streams with the parameters
in the file, and the laws that they list (for a stream those of its real device, over all outcomes
of its coins). Everything that decides is computed here, in fractions and with Python's standard
library: the digest of the laws, their largest ratio, and an epsilon that is proven to be at or
above its logarithm. A certificate is refused if any field differs from what is computed here.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from sfumato import __version__, catalog
from sfumato.checks.transcripts import Devices, Transcript
from sfumato.core.curator import Ask
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.core.stream import Stream
from sfumato.streams import registry

__all__ = ["FORMAT", "Certified", "Untrue", "digest", "listed", "parameters", "sealed", "verify"]

FORMAT: Final = 1
CERTIFICATE: Final = {"format", "sfumato", "python", "records", "digest"}
RECORD: Final = {"parameters", "tier", "asks", "servers", "law", "ratio", "epsilon", "spent"}
TERMS: Final = 200
"""The number of terms of the series of e^x; for x up to 20 the rest is below 1e-100."""

Certified = Mechanism | Noise | Stream
Laws = dict[tuple[int, ...], dict[str, Fraction]]
"""The probability of each output, by the sequence of inputs, which are given as indices."""


class Untrue(Exception):
    """A certificate differs from what its verification computes."""


def verify(certificate: Any) -> int:
    """Return the number of records of a certificate; raise Untrue if anything in it is wrong."""
    _has(certificate, CERTIFICATE, "the certificate")
    _agree(certificate["digest"], sealed(certificate)["digest"], "digest")
    _agree(certificate["format"], FORMAT, "format")
    _agree(certificate["sfumato"], __version__, "sfumato")
    for number, record in enumerate(certificate["records"]):
        _has(record, RECORD, f"records[{number}]")
        try:
            computed = _computed(record)
        except Exception as error:  # what cannot be computed is wrong
            raise Untrue(f"records[{number}] cannot be verified: {error}") from error
        for field, value in computed.items():
            _agree(record[field], value, f"{field} of records[{number}]")
        if Fraction(record["spent"]) > Fraction(record["epsilon"]):
            raise Untrue(f"records[{number}] spends {record['spent']}, more than its epsilon.")
    return len(certificate["records"])


def sealed(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate with a digest of all its other fields."""
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    return rest | {"digest": hashlib.sha256(_text(rest).encode()).hexdigest()}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _has(table: Any, fields: set[str], name: str) -> None:
    if not isinstance(table, dict) or set(table) != fields:
        raise Untrue(f"{name} has not the fields {', '.join(sorted(fields))}, and no others.")


def _agree(stated: Any, computed: Any, name: str) -> None:
    if _text(stated) != _text(computed):
        raise Untrue(f"{name} is {computed!r}; the certificate says {stated!r}.")


def _computed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a record must have, computed from its parameters."""
    subject, tier = _certified(record["parameters"]), record["tier"]
    promises = subject.offers if isinstance(subject, Stream) else (subject,)
    if tier not in range(len(promises)):
        raise Untrue(f"nothing is promised to tier {tier!r}.")
    asked = {field: record[field] for field in ("asks", "servers")}
    tables = list(listed(subject, tier, **asked))
    if isinstance(subject, Noise):  # P[z] and P[z + 1] differ by exactly e^rate for every z
        claimed, ratio = Fraction(str(subject.epsilon)), None
        spent = subject.law().rate * subject.sensitivity
    else:
        window = subject.offers[tier].window if isinstance(subject, Stream) else None
        groups = (group for laws in tables for group in _neighbours(laws, window))
        claimed, ratio = Fraction(promises[tier].epsilon), max(map(_largest_ratio, groups))
        spent = Fraction(_log_above(ratio))
    return {
        "parameters": parameters(subject),
        "tier": int(tier),
        **(asked if isinstance(subject, Stream) else {"asks": [], "servers": []}),
        "law": digest(tables),
        "ratio": None if ratio is None else str(ratio),
        "epsilon": str(claimed),
        "spent": str(spent),
    }


def parameters(subject: Certified) -> dict[str, Any]:
    """Return the parameters of a mechanism, noise or stream, as plain data."""
    return subject.spec() if isinstance(subject, Stream) else subject.configuration()


def _certified(parameters: Mapping[str, Any]) -> Certified:
    """Return the mechanism, noise or stream with these parameters."""
    if "stream" in parameters:
        return registry.stream_of(parameters)
    if "mechanism" not in parameters:
        rest = {key: value for key, value in parameters.items() if key != "noise"}
        return catalog.NOISES[parameters["noise"]](**rest)
    return catalog.from_configuration(parameters)


def listed(
    subject: Certified,
    tier: int,
    asks: Sequence[Mapping[str, Any]],
    servers: Sequence[Sequence[Sequence[int]]],
) -> Iterator[Laws]:
    """Yield tables of laws to compare: one for each public part of a report, or each server.

    Parameters
    ----------
    subject, tier
        The certified object and, for a stream, the index of the tier.
    asks
        The questions to the devices of a stream, as plain data.
    servers
        The questions of each server in each period, as indices in ``asks``.

    """
    if isinstance(subject, Noise):
        yield {(): {"rate": subject.law().rate}}
    elif isinstance(subject, Stream):
        devices, window = Devices(subject, tier), subject.offers[tier].window
        # If windows are compared and values last, no news is the same as one of the values.
        values = range(len(subject.inputs()) + (window is None or not subject.lasts))
        questions = [_question(ask) for ask in asks]
        for server in servers:
            if len(server) != (subject.horizon or (window or 1) + 1):
                raise Untrue(f"a server asks in {len(server)} periods.")
            periods = [tuple(questions[number] for number in period) for period in server]
            yield {inputs: _heard(law) for inputs, law in devices.laws(periods, values)}
    else:
        by_input = [subject.laws(value) for value in subject.inputs()]
        for laws in zip(*by_input, strict=True):
            yield {(number,): _reported(law) for number, law in enumerate(laws)}


def _question(ask: Mapping[str, Any]) -> Ask:
    return Ask(**{**ask, "mechanism": catalog.from_configuration(ask["mechanism"])})


def _heard(law: Mapping[Transcript, Fraction]) -> dict[str, Fraction]:
    """Return the probability of each transcript, by the places and bytes of its messages."""
    return {
        " ".join(f"{'.'.join(map(str, each.place))}:{each.payload.hex()}" for each in heard): chance
        for heard, chance in law.items()
    }


def _reported(law: Law) -> dict[str, Fraction]:
    """Return the probability of each report, by its bytes."""
    outputs = [output.tobytes().hex() for output in law.outputs]
    if len(set(outputs)) < len(outputs):
        raise Untrue("a law lists a report twice.")
    chances = (Fraction(numerator, law.denominator) for numerator in law.numerators)
    return {output: chance for output, chance in zip(outputs, chances, strict=True) if chance}


def _neighbours(laws: Laws, window: int | None) -> Iterator[list[dict[str, Fraction]]]:
    """Yield groups of laws whose inputs differ within one window; without a window, all laws."""
    length = len(next(iter(laws)))
    width = length if window is None else window
    for start in range(max(1, length - width + 1)):
        groups: dict[tuple[int, ...], list[dict[str, Fraction]]] = {}
        for inputs, law in laws.items():
            groups.setdefault(inputs[:start] + inputs[start + width :], []).append(law)
        yield from groups.values()


def _largest_ratio(laws: Sequence[Mapping[str, Fraction]]) -> Fraction:
    """Return the largest ratio of an output's probabilities under two of the laws."""
    if any(sum(law.values()) != 1 or min(law.values()) < 0 for law in laws):
        raise Untrue("the chances of a law do not sum to 1.")
    worst = Fraction(1)
    for output in {output for law in laws for output in law}:
        chances = [law.get(output, Fraction(0)) for law in laws]
        if not min(chances):
            raise Untrue(f"some inputs can lead to the output {output}, and others cannot.")
        worst = max(worst, max(chances) / min(chances))
    return worst


def digest(tables: Iterable[Laws]) -> str:
    """Return the SHA-256 of laws, written as one line for each possible output, sorted."""
    hashed = hashlib.sha256()
    for laws in tables:
        for inputs, law in sorted(laws.items()):
            for output, chance in sorted(law.items()):
                hashed.update(f"{inputs} {output} {chance}\n".encode())
        hashed.update(b"\n")
    return hashed.hexdigest()


def _log_above(ratio: Fraction) -> float:
    """Return the smallest floating-point number that is proven to be at or above log(ratio)."""
    x = math.log1p(ratio - 1)
    while _exp_below(Fraction(x)) < ratio:
        x = math.nextafter(x, math.inf)
    while x > 0 and _exp_below(Fraction(lower := math.nextafter(x, 0.0))) >= ratio:
        x = lower
    return x


def _exp_below(x: Fraction) -> Fraction:
    """Return a partial sum of 1 + x + x^2/2! + ..., which is at most e^x for x >= 0."""
    term = total = Fraction(1)
    for number in range(1, TERMS):
        term *= x / number
        total += term
    return total


def main(path: str) -> int:
    """Verify the certificate in a file; print one sentence, and return 1 if it is refused."""
    try:
        records = verify(json.loads(Path(path).read_bytes()))
    except (Untrue, OSError, ValueError, RecursionError) as error:
        sys.stderr.write(f"{path} is refused: {error}\n")
        return 1
    sys.stdout.write(f"{path} is true: {records} promises are kept, computed from their laws.\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m sfumato.checks.verify certificate.json")
    sys.exit(main(sys.argv[1]))
