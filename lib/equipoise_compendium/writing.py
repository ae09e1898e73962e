"""Files as they go: whole or not at all, several together or none, and nothing left behind by a process that died."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from equipoise.problems import reason

CSV_DIGITS = "%.12g"
_ENDING = ".equipoise-part"
_FORMULA = re.compile(r"\s*([=@]\S|[+-]\s*[^\W\d]|[+-].*(\w\(|[|!]))", re.DOTALL)


def harmless(text: Any) -> Any:
    """A cell, behind an apostrophe if it is text that a spreadsheet would run."""
    return f"'{text}" if isinstance(text, str) and _FORMULA.match(text) else text


def write_csv(
    table: pd.DataFrame,
    path: Path | TextIO | BinaryIO,
    *,
    for_spreadsheets: bool = False,
    header: bool = True,
) -> None:
    """Write a table as CSV at 12 significant digits, the same bytes everywhere.

    ``for_spreadsheets`` makes `harmless` what a spreadsheet would run: a table to look at, not to
    read again.
    """
    tidy = table.copy()
    if for_spreadsheets:
        tidy.columns = tidy.columns.map(harmless)
        for place, dtype in enumerate(tidy.dtypes):
            if not pd.api.types.is_numeric_dtype(dtype):
                tidy.isetitem(place, tidy.iloc[:, place].map(harmless))
    for column in tidy.columns[[pd.api.types.is_float_dtype(dtype) for dtype in tidy.dtypes]]:
        tidy[column] = tidy[column] + 0.0  # no negative zero
    tidy.to_csv(
        path,
        index=False,
        header=header,
        float_format=CSV_DIGITS,
        lineterminator="\n",
        encoding="utf-8",
    )


def lock(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed or this process dies, if no other process has locked it.

    ``wait``: until none has. Returns whether it is locked, or None where files cannot be.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ModuleNotFoundError, OSError):  # Windows, or a file system without locks
        return None
    return True


def sweep(folder: Path) -> None:
    """Remove from a folder what `staging` made there for a process that has died since."""
    for left in folder.glob(f".*{_ENDING}"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY)
            try:
                if lock(descriptor):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def staging(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """A file, or a folder, beside a target, to be filled and put in its place; it is gone when the block ends."""
    while True:
        made = target.with_name(f".{target.name[:40]}-{secrets.token_hex(4)}{_ENDING}")
        if folder:
            made.mkdir()
        descriptor = os.open(
            made, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666
        )
        if lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            break  # else another process swept it before it was locked
        os.close(descriptor)
    try:
        yield made
    finally:
        if folder:
            shutil.rmtree(made, ignore_errors=True)
        else:
            made.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder to be filled, in its place once the block has ended well; one that is there is refused."""
    target = Path(path).absolute()
    if target.exists():
        raise ValueError(f"{path} is there already; name a folder that is not")
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with staging(target, folder=True) as made:
        yield made
        made.rename(target)


def _keep(target: Path, stack: ExitStack, undo: ExitStack) -> None:
    """Have ``undo`` put back what is in a place now."""
    if not target.exists():
        undo.callback(target.unlink, missing_ok=True)
        return
    old = stack.enter_context(staging(target))
    old.unlink()
    try:
        os.link(target, old)
    except OSError:  # a file system without hard links
        shutil.copy2(target, old)
    undo.callback(old.replace, target)


def write_files(contents: Mapping[Path, pd.DataFrame | str | bytes]) -> None:
    """Write every file or none: text, and tables as CSV or Parquet by the ending of the name.

    Each is written beside its place and through to the disk before the first is put there. A new
    file has the mode that the umask leaves, one that was there keeps its own; through a link its
    target is written.
    """
    staged: list[tuple[Path, Path, Path]] = []
    at = Path()
    try:
        with ExitStack() as stack, ExitStack() as undo:
            for at, content in contents.items():
                target = Path(os.path.realpath(at))
                sweep(target.parent)
                made = stack.enter_context(staging(target))
                staged.append((at, target, made))
                with made.open("wb") as file:
                    if isinstance(content, (str, bytes)):
                        file.write(content.encode() if isinstance(content, str) else content)
                    elif at.suffix.lower() == ".parquet":
                        content.to_parquet(file, index=False)
                    else:
                        write_csv(content, file)
                    file.flush()
                    os.fsync(file.fileno())
                if target.exists():
                    made.chmod(target.stat().st_mode & 0o7777)
            for at, target, made in staged:  # noqa: B007 - the error tells it
                if made is not staged[-1][2]:
                    _keep(target, stack, undo)
                made.replace(target)
            undo.pop_all()
    except OSError as error:
        raise ValueError(f"cannot write {at}: {reason(error)}; nothing was written") from None
