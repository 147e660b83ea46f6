"""What today's code writes is what is kept, file by file.

With ``--write-vectors`` what says something else than before is written; see docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.vectors import devices, keeping, machines, released, stores, tasks, wire
from tests.vectors.keeping import FOLDER

MAKERS = [
    pytest.param(tasks.files, id="tasks"),
    pytest.param(tasks.slow_files, id="tasks_that_take_long", marks=pytest.mark.slow),
    pytest.param(wire.files, id="wire"),
    pytest.param(machines.files, id="machines"),
    pytest.param(devices.files, id="devices"),
    pytest.param(stores.files, id="stores"),
    pytest.param(released.files, id="released"),
]
OLD = {
    "journals/format_1.json",
    "journals/format_1.sql",
    "journals/schema_4.sql",
    "stores/schema_3.sql",
    "stores/schema_3_format_1.sql",
    "stores/schema_4.sql",
    "tasks/format_1.json",
    "tasks/format_2_planned.json",
}
"""What versions before wrote, and nobody can write any more."""
MOST_BYTES = 600_000


@pytest.mark.parametrize("made", MAKERS)
def test_what_is_written_is_what_is_kept(
    made: Callable[[], keeping.Files], pytestconfig: pytest.Config
) -> None:
    written = made()
    if pytestconfig.getoption("--write-vectors"):
        keeping.write(written)
    for name, content in written.items():
        assert keeping.same(name, content, (FOLDER / name).read_bytes()), name
    folders = {name.partition("/")[0] for name in written}
    kept = {path for folder in folders for path in FOLDER.glob(f"{folder}/*")}
    names = {f"{path.parent.name}/{path.name}" for path in kept} - OLD
    if made != tasks.slow_files:
        assert names - {f"tasks/{name}.json" for name in tasks.SLOW} == set(written)


def test_all_vectors_say_their_version_and_are_small() -> None:
    files = [path for path in FOLDER.glob("*/*") if path.is_file() and path.suffix != ".pyc"]
    for path in files:
        if path.suffix == ".json":
            name = f"{path.parent.name}/{path.name}"
            assert type(keeping.load(name)["version"]) is int, name
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
