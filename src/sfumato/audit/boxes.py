"""Black boxes: a mechanism, a device's whole transcript, or any function that somebody brings."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from sfumato.audit.auditing import Draw
from sfumato.audit.visible import Outputs, array_batch, object_batch
from sfumato.checks.transcripts import Asks
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.core.stream import Stream
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Source, seeded

PATIENCE: Final = 1_000
"""The number of times that a function may return None before anything else."""

__all__ = ["calls_of", "function_at", "reports_of", "sums_of", "transcripts_of"]


def reports_of(mechanism: Mechanism, rng: Source) -> Draw:
    """Return the reports of a mechanism as a black box.

    Parameters
    ----------
    mechanism
        The mechanism.
    rng
        The source of its coins.

    """

    def draw(value: Any, n: int) -> Outputs:
        encoded = np.repeat(mechanism.encode([value]), n, axis=0)
        return array_batch(mechanism.randomize_encoded(encoded, rng))

    return draw


def sums_of(noise: Noise, rng: Source) -> Draw:
    """Return a sum with noise as a black box.

    Parameters
    ----------
    noise
        The noise.
    rng
        The source of its coins.

    """

    def draw(value: Any, n: int) -> Outputs:
        sums = noise.add(np.full(n, value, dtype=np.int64), rng)
        return array_batch(sums.view([("sum", sums.dtype)]))

    return draw


def transcripts_of(stream: Stream, tier: int, asked: Sequence[Asks], rng: Source) -> Draw:
    """Return all that is ever heard of a device as a black box; a value is a sequence of values.

    Parameters
    ----------
    stream, tier
        The stream, and the tier of the device.
    asked
        The questions of each period.
    rng
        The source of the device's coins.

    """

    def live(values: Sequence[Any]) -> dict[str, bytes]:
        device, heard = stream.device(rng, tier), []
        for value, asks in zip(values, asked, strict=True):
            heard.append(device.observe(value, rng))
            for ask in asks:
                try:
                    heard.append(device.answer(ask, rng))
                except MismatchError:
                    heard.append(None)
        return {str(tuple(each.place)): each.payload for each in heard if each is not None}

    return lambda values, n: object_batch([live(values) for _ in range(n)])


def calls_of(function: Callable[..., Any], seed: int = 0) -> Draw:
    """Return a function of a user's own as a black box.

    It is called with the value. If it needs a second argument, or has one that is called ``rng``,
    that is a :class:`numpy.random.Generator`; otherwise its coins are its own.

    Parameters
    ----------
    function
        The function; each call must be independent of all others.
    seed
        The seed of the generator.

    """
    name = getattr(function, "__name__", repr(function))
    more = (seeded(seed).simulator(),) if _takes_rng(function, name) else ()

    def called(value: Any) -> Any:
        try:
            return function(value, *more)
        except Exception as error:
            raise InputError(
                f"{name} raised {type(error).__name__} ({error}) for the value {value!r}; an "
                "output for every value is expected."
            ) from error

    silent = 0.0  # minus infinity after the first output

    def draw(value: Any, n: int) -> Outputs:
        nonlocal silent
        outputs = [called(value) for _ in range(n)]
        silent = silent + n if all(output is None for output in outputs) else -math.inf
        if silent > PATIENCE:
            raise InputError(f"{name} returned nothing {silent:.0f} times; an output is expected.")
        return object_batch(outputs)

    return draw


def _takes_rng(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function takes a generator; raise InputError if it takes something else."""
    if not callable(function):
        raise InputError(
            f"{name} is of the type {type(function).__name__}; a function is expected."
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise InputError(f"{name} is asynchronous or a generator; a plain function is expected.")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions in C do not say
        return False
    positional = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    required = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    any_number = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if not positional and not any_number:
        raise InputError(f"{name} takes no value; (value) or (value, rng) is expected.")
    if len(required) > 2 or any(
        each.name in required and each.kind is each.KEYWORD_ONLY for each in parameters
    ):
        raise InputError(
            f"{name} needs {', '.join(required)}; (value) or (value, rng) is expected."
        )
    return len(required) == 2 or any(each.name == "rng" for each in positional[1:2])


def function_at(address: str) -> Callable[..., Any]:
    """Return the function at ``package.module:function``; raise InputError if there is none."""
    module, colon, attribute = address.partition(":")
    if not (module and colon and attribute):
        raise InputError(f"module is {address!r}; package:function is expected.")
    try:
        function: Any = import_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"module is {address!r}; {module} cannot be imported ({type(error).__name__}: {error})."
        ) from error
    for name in attribute.split("."):
        if not hasattr(function, name):
            raise InputError(f"module is {address!r}; {module} has no {attribute}.")
        function = getattr(function, name)
    _takes_rng(function, attribute)
    return function  # type: ignore[no-any-return]
