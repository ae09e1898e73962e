"""Every setting of a thesis config has a comment with its place in the text, or is ours."""

import re

import pytest

from equipoise_compendium import project

PLACE = re.compile(r"\bours\b|\bprogram\b|\bnot stated\b|\bfootnote\b|\b\d\.(\d|[A-J])")


def settings_without_place(text: str) -> list[str]:
    """Lines of settings, apart from those that are ours throughout, without place in a comment."""
    (ours,) = re.findall(r"Ours throughout: (.*)$", text, re.MULTILINE)
    without = []
    for line in text.splitlines():
        setting, _, comment = line.partition("#")
        found = re.match(r"[\s-]*([\w .'-]+): +[^\s&]", setting)
        if found and found[1] not in ours.split(", ") and not PLACE.search(comment):
            without.append(line.strip())
    return without


@pytest.mark.parametrize(
    "study", ["attribution", "query_by_example", "ranking_bias", "satisfaction"]
)
def test_every_setting_of_the_thesis_has_its_place_in_the_text_or_is_ours(study: str) -> None:
    text = project.data("studies", study, "thesis.yaml").read_text(encoding="utf-8")
    assert settings_without_place(text) == []
    assert len(settings_without_place(re.sub("  #.*", "", text))) > 20


def test_a_setting_without_place_is_found() -> None:
    text = "# Ours throughout: a\na: 1\nb: 2  # section 2.3: so\nc:\n  d: 3\n  e: 4  # because\n"
    assert settings_without_place(text) == ["d: 3", "e: 4  # because"]
