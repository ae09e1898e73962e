"""Guards what is written: files complete or as they were, with due modes, and nothing left."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium.writing import lock, new_folder, staging, sweep, write_files

TABLE = pd.DataFrame({"run": ["a"], "measure": ["R"], "value": [0.5]})
FULL = """
import os, sys
from pathlib import Path
import pandas as pd
from equipoise_compendium.writing import write_files
folder = Path(sys.argv[1])
big = pd.DataFrame({"value": [1 / 3 + i for i in range(200_000)]})
write_files({folder / "a.csv": "new", folder / sys.argv[2]: big})
"""


def start(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def python(*arguments: str | Path) -> subprocess.Popen[str]:
    return start(sys.executable, "-c", *arguments)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_text_bytes_and_tables(tmp_path: Path) -> None:
    files = {
        tmp_path / "a.txt": "ü\n",
        tmp_path / "b": b"\x00\r\n",
        tmp_path / "c.csv": TABLE,
        tmp_path / "d.PARQUET": TABLE,
    }
    write_files(files)
    assert [(tmp_path / name).read_bytes() for name in ("a.txt", "b", "c.csv")] == [
        "ü\n".encode(),
        b"\x00\r\n",
        b"run,measure,value\na,R,0.5\n",
    ]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "d.PARQUET"), TABLE)
    assert len(names(tmp_path)) == 4


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_files(
            {tmp_path / "a.csv": TABLE, tmp_path / "b.parquet": TABLE, tmp_path / "c.txt": "c"}
        )
    finally:
        os.umask(before)
    assert {mode(path) for path in tmp_path.iterdir()} == {0o666 & ~mask}


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o755])
def test_a_file_that_was_there_keeps_its_mode(kept: int, tmp_path: Path) -> None:
    for name in ("a.csv", "b.parquet"):
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(kept)
    write_files({tmp_path / "a.csv": TABLE, tmp_path / "b.parquet": TABLE})
    assert {mode(path) for path in tmp_path.iterdir()} == {kept}
    assert (tmp_path / "a.csv").read_text() != "old"


def test_through_a_link_its_target_is_written_and_a_hard_link_lets_go(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(Path("far") / "real.csv")
    (tmp_path / "other.csv").hardlink_to(tmp_path / "far" / "real.csv")
    write_files({tmp_path / "link.csv": "new"})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "far" / "real.csv").read_text() == "new"
    assert (tmp_path / "other.csv").read_text() == "old"
    assert names(tmp_path / "far") == ["real.csv"]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_in_the_place_of_the_last_leaves_all_as_they_were(
    there: bool, tmp_path: Path
) -> None:
    first, second, folder = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    if there:
        first.write_text("old a")
        second.write_text("old b")
        first.chmod(0o640)
    folder.mkdir()
    with pytest.raises(ValueError, match=r"cannot write \S*c\.csv: a folder; nothing was written"):
        write_files({first: "new a", second: "new b", folder: "new c"})
    assert names(tmp_path) == (["a.csv", "b.csv", "c.csv"] if there else ["c.csv"])
    if there:
        assert (first.read_text(), second.read_text(), mode(first)) == ("old a", "old b", 0o640)


def test_what_was_written_is_told_where_a_later_file_cannot_be_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Path.replace

    def refuse_second(self: Path, target: Path) -> Path:
        if target.name == "b.csv":
            raise PermissionError(1, "not here")
        return put(self, target)

    monkeypatch.setattr(Path, "replace", refuse_second)
    files = {tmp_path / name: "new" for name in ("a.csv", "b.csv", "c.csv")}
    for path in files:
        path.write_text("old")
    told = r"cannot write \S*b\.csv: no permission; \S*a\.csv was written"
    with pytest.raises(ValueError, match=told):
        write_files(files)
    assert [path.read_text() for path in files] == ["new", "old", "old"]
    assert names(tmp_path) == ["a.csv", "b.csv", "c.csv"]


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_a_file_larger_than_is_allowed_leaves_the_old_ones_and_one_sentence(
    name: str, tmp_path: Path
) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    (tmp_path / "a.csv").write_text("old a")
    (tmp_path / name).write_text("old b")
    _, said = python(limited + FULL, tmp_path, name).communicate()
    assert (
        f"ValueError: cannot write {tmp_path / name}: file too large; nothing was written" in said
    )
    assert [(tmp_path / one).read_text() for one in names(tmp_path)] == ["old a", "old b"]


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_a_full_disk_leaves_the_old_files_and_one_sentence(name: str, tmp_path: Path) -> None:
    own = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    mount = (
        'mount -t tmpfs -o size=128k none "$0" && printf old > "$0/a.csv" && printf old > "$0/$1"'
    )
    tried = start(*own, mount, tmp_path, name)
    tried.communicate()
    if tried.returncode:
        pytest.skip("no file system can be mounted here: a full disk was not tried")
    script = (
        f'{mount} && ! "{sys.executable}" -c "$2" "$0" "$1" && cat "$0/a.csv" "$0/$1" && ls -A "$0"'
    )
    there, said = start(*own, script, tmp_path, name, FULL).communicate()
    assert f"ValueError: cannot write {tmp_path / name}: no space left; nothing was written" in said
    assert there == f"oldolda.csv\n{name}\n"


def test_a_folder_that_no_file_can_be_made_in_is_told(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "no" / "a.csv", "no such file"),
        (Path("/proc/a.csv"), "no such file"),
    ):
        with pytest.raises(ValueError, match=f"cannot write {path}: {reason}"):
            write_files({path: "new"})


# --- what dead processes leave --------------------------------------------------------------------


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_makes_is_not(
    tmp_path: Path,
) -> None:
    makes = (
        "import sys, time; from pathlib import Path; from contextlib import ExitStack\n"
        "from equipoise_compendium.writing import staging\n"
        "with ExitStack() as stack:\n"
        "    path = Path(sys.argv[1]) / 'a'\n"
        "    made = [stack.enter_context(staging(path, folder=f)) for f in (False, True)]\n"
        "    (made[1] / 'within').write_text('')\n"
        "    print('made', flush=True); time.sleep(60)\n"
    )
    (tmp_path / ".mine.equipoise-part-not").write_text("")
    first, second = python(makes, tmp_path), python(makes, tmp_path)
    assert [line(first), line(second)] == ["made\n"] * 2
    sweep(tmp_path)
    assert len(names(tmp_path)) == 5
    kill(first)
    with staging(tmp_path / "b") as made:
        sweep(tmp_path)
        assert made.exists()
    assert len(names(tmp_path)) == 3
    kill(second)
    write_files({tmp_path / "b": "new"})
    assert names(tmp_path) == [".mine.equipoise-part-not", "b"]


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "locked"
    holds = "import os, sys, time; from equipoise_compendium.writing import lock\n"
    holds += "print(lock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)), flush=True); time.sleep(60)"
    process = python(holds, path)
    assert line(process) == "True\n"
    with path.open() as file:
        assert lock(file.fileno()) is False
        kill(process)
        assert lock(file.fileno()) is True


def test_a_file_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[Path] = []

    def late(descriptor: int) -> bool | None:
        if not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        return lock(descriptor)

    monkeypatch.setattr("equipoise_compendium.writing.lock", late)
    with staging(tmp_path / "a") as made:
        assert made.exists()
        assert made not in swept


def test_writers_of_one_file_at_once_leave_one_of_theirs(tmp_path: Path) -> None:
    writes = "import sys; from pathlib import Path\n"
    writes += "from equipoise_compendium.writing import write_files\n"
    writes += "for _ in range(20): write_files({Path(sys.argv[1]): sys.argv[2] * 50_000})"
    target = tmp_path / "a.txt"
    running = [python(writes, target, letter) for letter in "xy"]
    while any(process.poll() is None for process in running):
        if target.exists():
            assert set(target.read_text()) in ({"x"}, {"y"})
        time.sleep(0.002)
    assert [(*process.communicate(), process.returncode) for process in running] == [
        ("", "", 0)
    ] * 2
    assert names(tmp_path) == ["a.txt"]


def test_a_new_folder_that_another_process_has_made_meanwhile_is_told(tmp_path: Path) -> None:
    target = tmp_path / "permuted"

    def make_both() -> None:
        with new_folder(target) as staged:
            (staged / "mine").write_text("")
            target.mkdir()
            (target / "theirs").write_text("")

    with pytest.raises(ValueError, match="another process has made it meanwhile; name another"):
        make_both()
    assert [path.name for path in tmp_path.rglob("*")] == ["permuted", "theirs"]


def test_a_full_disk_under_a_new_folder_is_called_so(tmp_path: Path) -> None:
    target = tmp_path / "permuted"
    message = f"cannot write {target}: no space left; nothing was written"
    with pytest.raises(ValueError, match=message), new_folder(target):
        raise OSError(errno.ENOSPC, "No space left on device")  # as a write raises it, of no file
    with pytest.raises(FileNotFoundError), new_folder(target):
        (tmp_path.parent / "what is read").read_text()
    assert not list(tmp_path.iterdir())


def test_new_files_are_all_there_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def fail_at_second(path: Path, target: Path) -> Path:
        if target.name == "second":
            raise OSError(errno.EACCES, "denied")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail_at_second)
    (tmp_path / "old").write_text("old")
    contents = {tmp_path / name: "new" for name in ("first", "old", "second")}
    with pytest.raises(ValueError, match=f"no permission; {tmp_path / 'old'} was written"):
        write_files(contents)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "new"}
