"""docs/conformance.md lists the cases as they are."""

import re
from pathlib import Path

from runners.conformance import CASES

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"


ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)


def test_every_case_is_listed_with_its_rules() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert {row[0]: row[1:] for row in rows} == {case.id: (case.title, ", ".join(case.sources)) for case in CASES}


def test_first_table_lists_the_cases_that_are_judged_in_every_run() -> None:
    first, _ = PAGE.read_text(encoding="utf-8").split("Numbers may be left out")
    assert {row[0] for row in ROW.findall(first)} == {case.id for case in CASES if case.sees_all_runs}
