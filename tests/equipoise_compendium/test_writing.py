"""Guards what is written: files complete or as they were, with their modes, and nothing left."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium.writing import harmless, new_folder, staging, write_files

TABLE = pd.DataFrame({"run": ["a"], "measure": ["R"], "value": [0.5]})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_text_bytes_and_tables(tmp_path: Path) -> None:
    files = {"a.txt": "ü\n", "b": b"\x00\r\n", "c.csv": TABLE, "d.PARQUET": TABLE}
    before = os.umask(0o022)
    try:
        write_files({tmp_path / name: content for name, content in files.items()})
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").read_bytes() == "ü\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "c.csv").read_bytes() == b"run,measure,value\na,R,0.5\n"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "d.PARQUET"), TABLE)
    assert names(tmp_path) == sorted(files)
    assert {mode(path) for path in tmp_path.iterdir()} == {0o644}


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real = tmp_path / "far" / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(Path("far") / "real.csv")
    write_files({tmp_path / "link.csv": "new"})
    assert (tmp_path / "link.csv").is_symlink()
    assert (real.read_text(), mode(real)) == ("new", 0o640)
    assert names(tmp_path / "far") == ["real.csv"]


def test_a_folder_in_the_place_of_the_last_leaves_all_as_they_were(tmp_path: Path) -> None:
    first, folder = tmp_path / "a.csv", tmp_path / "c.csv"
    first.write_text("old a")
    folder.mkdir()
    with pytest.raises(ValueError, match=r"cannot write \S*c\.csv, which is a folder; nothing"):
        write_files({first: "new a", tmp_path / "b.csv": "new b", folder: "new c"})
    assert names(tmp_path) == ["a.csv", "c.csv"]
    assert first.read_text() == "old a"


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_a_write_that_fails_leaves_the_old_files_and_one_sentence(
    name: str, tmp_path: Path
) -> None:
    """By a limit on the size of files, which fails where a full disk would."""
    code = """
import resource, sys
from pathlib import Path
import pandas as pd
from equipoise_compendium.writing import write_files
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
folder = Path(sys.argv[1])
big = pd.DataFrame({"value": [1 / 3 + i for i in range(200_000)]})
write_files({folder / "a.csv": "new", folder / sys.argv[2]: big})
"""
    (tmp_path / "a.csv").write_text("old a")
    (tmp_path / name).write_text("old b")
    command = [sys.executable, "-c", code, str(tmp_path), name]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"cannot write {tmp_path / name} (file too large); nothing was written" in ran.stderr
    assert [(tmp_path / one).read_text() for one in names(tmp_path)] == ["old a", "old b"]


def test_a_new_folder_is_complete_or_absent(tmp_path: Path) -> None:
    target = tmp_path / "permuted"
    message = rf"cannot write {target} \(no space left on device\); nothing was written"
    with pytest.raises(ValueError, match=message), new_folder(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a write raises it, of no file
    with pytest.raises(FileNotFoundError), new_folder(target):
        (tmp_path.parent / "what is read").read_text()
    assert not list(tmp_path.iterdir())
    with new_folder(target) as staged:
        (staged / "a").write_text("x")
        assert not target.exists()
    assert names(tmp_path) == ["permuted"]
    with pytest.raises(ValueError, match="must be a new or an empty folder"), new_folder(target):
        pass


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "-cmd|' /C calc'!A0", "+a", " =HYPERLINK(1)"])
def test_no_text_is_a_formula_of_a_spreadsheet(text: str) -> None:
    assert harmless(text) == f"'{text}"
    for plain in ("-0.5", "+ 3", "a = b", 3, "- 2 to 4"):
        assert harmless(plain) == plain


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from equipoise_compendium.writing import new_folder, staging
with staging(Path(sys.argv[1], "a.csv")) as part, new_folder(Path(sys.argv[1], "new")):
    part.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(names(tmp_path)) == 2
    with staging(tmp_path / "at work") as part:
        part.write_text("half")
        write_files({tmp_path / "b.csv": "whole"})
        assert names(tmp_path) == sorted([part.name, "b.csv"])
    assert names(tmp_path) == ["b.csv"]
