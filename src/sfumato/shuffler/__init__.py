"""The shuffler: it takes sealed reports, forgets whose they are, mixes them and hands them on.

It is a program of its own, meant to be run by somebody else than the collector. It imports nothing
that could open a report. What it does is all in this folder: :mod:`~sfumato.shuffler.holding` keeps
reports on disk, :mod:`~sfumato.shuffler.mixing` mixes them, :mod:`~sfumato.shuffler.handing_on`
talks to the collector and :mod:`~sfumato.shuffler.front` to devices.
"""

from __future__ import annotations
