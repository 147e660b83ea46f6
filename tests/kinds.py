"""The kind of a test, read from the code that it reaches: it starts processes, or a browser.

A test reaches what it names, the fixtures it asks for and its parameters, and what these name in
turn, as far as that stands in tests/. So nobody has to remember a marker where a process is started
three calls away; only what sfumato itself starts cannot be seen from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import pytest

__all__ = ["QUICK", "kinds_of", "reached"]

QUICK: Final = "not slow and not statistics and not browser and not processes"
"""What `./run test --quick` asks pytest for."""
STARTERS: Final = {
    "fork": "processes",
    "multiprocessing": "processes",
    "playwright": "browser",
    "subprocess": "processes",
}
"""Names that start processes, and the kind of test that uses them."""


def kinds_of(item: pytest.Item) -> set[str]:
    """Return the kinds of a test that can be read from its code."""
    if not isinstance(item, pytest.Function):
        return set()
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001 -- nothing public has them
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    roots = [item.function, *(last.func for *_, last in fixtures), *parameters]
    return {kind for root in roots for kind in reached(_defined(root))}


@cache
def reached(root: Any) -> frozenset[str]:
    """Return the kinds of what a function or class of the tests reaches."""
    todo, seen, kinds = [root], {id(root): root}, set()
    while todo:
        thing = todo.pop()
        package = _module(thing).partition(".")[0]
        if package in STARTERS:
            kinds.add(STARTERS[package])
        for named in _named(thing) if package == "tests" else ():
            if id(named) not in seen:
                seen[id(named)] = named
                todo.append(named)
    return frozenset(kinds)


def _defined(thing: Any) -> Any:
    """Return the code behind a value: a function, or the class of what is neither."""
    thing = inspect.unwrap(getattr(thing, "fget", thing))
    return thing if isinstance(thing, (FunctionType, ModuleType, str, type)) else type(thing)


def _module(thing: Any) -> str:
    """Return the module that something is, or is from; a name may be that of a module."""
    if isinstance(thing, str):
        return thing
    return str(thing.__name__ if isinstance(thing, ModuleType) else thing.__module__)


def _named(thing: Any) -> Iterator[Any]:
    """Yield what a function names, or the members and parents of a class."""
    if isinstance(thing, type):
        yield from thing.__bases__
        yield from map(_defined, vars(thing).values())
    elif isinstance(thing, FunctionType):
        for name in _names(thing.__code__):
            yield _defined(thing.__globals__.get(name, name))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names in a function, and in the functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
