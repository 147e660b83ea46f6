"""Questions in plain words become task files that can be planned, read and changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

from sfumato import catalog
from sfumato.errors import InputError
from sfumato.planner import TEMPLATES, template_for


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_a_task_whose_fields_are_explained(name: str) -> None:
    template = TEMPLATES[name]
    text = template.text()
    task = catalog.parse(text)
    assert task.title == template.fields["title"]
    assert text.startswith(f"# {template.question}\n")
    assert text.count("\n# ") >= 4
    assert max(map(len, text.splitlines())) <= 100
    assert set(template.why) <= set(template.fields)
    assert catalog.parse(template.text(title="Other", epsilon=0.5)).title == "Other"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        *((template.question, name) for name, template in TEMPLATES.items()),
        *((name, name) for name in TEMPLATES),
        ("how many users have dark mode on?", "features"),
        ("in which city are our riders", "places"),
        ("how many sensors are offline", "outages"),
        ("what is the mean temperature?", "level"),
        ("how quickly is version 2 installed?", "adoption"),
        ("which prices go up?", "trends"),
    ],
)
def test_a_question_is_recognised_by_its_words(words: str, name: str) -> None:
    assert template_for(words) is TEMPLATES[name]


def test_a_question_that_nobody_knows_is_answered_with_all_there_are() -> None:
    for words in ("", "what is the meaning of life", "of the and"):
        with pytest.raises(InputError, match="one of these is expected: features: Which features"):
            template_for(words)


def test_a_file_is_written_and_its_plan_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    asked = ("task", "new", file, "--ask", "Which features do people have switched on?")
    result = run(*asked, "--items", "captions, sync", "--periods", 7)
    assert f"Next:  sfumato plan {file}" in result.stdout
    task = catalog.read(file)
    assert (task.periods, task.values.width) == (7, 2)
    planned = answer("plan", file, "--devices", 50_000)
    assert planned["verdict"]["sentence"] in run("plan", file, "--devices", 50_000).stdout
    assert "exists; --force replaces it" in refused(*asked)


def test_options_that_a_question_does_not_have_are_refused(tmp_path: Path) -> None:
    asked = ("task", "new", tmp_path / "task.toml", "--ask")
    assert "--ask is 'hmm'; one of these is expected" in refused(*asked, "hmm")
    assert "--window is 4 where --ask means" in refused(*asked, "features", "--window", 4)
    assert "--items is 'a,b' where values are" in refused(*asked, "level", "--items", "a,b")
    assert "--kind is 'set' where --ask means" in refused(*asked, "places", "--kind", "set")
    assert "beside --stream; only one" in refused(*asked, "places", "--stream", "topl")
    assert "beside --guided; only one" in refused(*asked, "places", "--guided")
