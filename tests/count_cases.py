"""Count the cases of the tests that ``data/reliability.csv`` names, and write them there."""

import contextlib
import sys

import pandas as pd
import pytest

from equipoise_compendium import project

PATH = project.root() / "data" / "reliability.csv"


class _Collected:
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = [item.nodeid.partition("[")[0] for item in session.items]


def counted() -> pd.DataFrame:
    """The table with its column ``cases`` made anew: parameters of the tests named."""
    table = pd.read_csv(PATH, dtype=str, keep_default_na=False)
    tests = " ".join(table["tests"]).split()
    files = sorted({str(project.root() / test.partition("::")[0]) for test in tests})
    collected = _Collected()
    options = [
        "--collect-only",
        "-qq",
        "-o",
        "python_files=test_*.py hard_*.py",
        "-p",
        "no:cacheprovider",
    ]
    ended = pytest.main(["--rootdir", str(project.root()), *options, *files], plugins=[collected])
    assert ended == 0, "the tests cannot be collected"
    assert not (missing := set(tests) - set(collected.names)), (
        f"there is no test {', '.join(missing)}"
    )
    return table.assign(
        cases=[str(sum(map(collected.names.count, row.split()))) for row in table["tests"]]
    )


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        text = counted().to_csv(index=False, lineterminator="\n")
    if "--check" in sys.argv:
        sys.exit(text != PATH.read_text(encoding="utf-8"))
    PATH.write_text(text, encoding="utf-8")
