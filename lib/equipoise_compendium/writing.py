"""Files as they go: complete or not at all, and nothing left behind by a process that died."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from equipoise_compendium.words import reason

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
    for place, dtype in enumerate(tidy.dtypes):
        if pd.api.types.is_float_dtype(dtype):
            # A negative zero becomes zero: which of them a sum gives is an accident.
            tidy.isetitem(place, tidy.iloc[:, place] + 0.0)
    tidy.to_csv(
        path,
        index=False,
        header=header,
        float_format=CSV_DIGITS,
        lineterminator="\n",
        encoding="utf-8",
    )


def lock(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed or this process dies.

    Returns whether it is locked: False where another process has locked it, unless this one is to
    ``wait`` for that; None where files cannot be locked.
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
    for leftover in folder.glob(f".*{_ENDING}"):
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDONLY)
            try:
                # What a living process makes is locked by it.
                if lock(descriptor):
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            finally:
                os.close(descriptor)


def _make_locked(target: Path, *, folder: bool) -> tuple[Path, int]:
    """A new file or folder beside a target, locked, and its descriptor."""
    while True:
        path = target.with_name(f".{target.name[:40]}-{secrets.token_hex(4)}{_ENDING}")
        if folder:
            path.mkdir()
            descriptor = os.open(path, os.O_RDONLY)
        else:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        is_ours = lock(descriptor) is not False
        is_there = os.fstat(descriptor).st_nlink > 0
        if is_ours and is_there:
            return path, descriptor
        os.close(descriptor)  # another process swept it before it was locked


@contextmanager
def staging(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """A file, or a folder, beside a target, to be filled and put in its place.

    What has not been put there is gone when the block ends.
    """
    path, descriptor = _make_locked(target, folder=folder)
    try:
        yield path
    finally:
        if folder:
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder to be filled, in its place once the block has ended well.

    One that is there already is refused.
    """
    target = Path(path).absolute()
    if target.exists():
        raise ValueError(f"{path} is there already; name a folder that is not")
    staged = target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        with staging(target, folder=True) as staged:
            yield staged
            staged.rename(target)
    except OSError as error:
        if target.exists():
            problem = "another process has made it meanwhile; name another folder"
            raise ValueError(f"cannot write {path}: {problem}") from None
        # Of a full disk no file is named; what else is named is not of this folder.
        place = Path(error.filename or staged)
        if error.errno == errno.EPIPE or not place.is_relative_to(target.parent):
            raise
        message = f"cannot write {path}: {reason(error)}; nothing was written"
        raise ValueError(message) from None


def _write_through(
    path: Path, content: pd.DataFrame | str | bytes, *, parquet: bool, for_spreadsheets: bool
) -> None:
    """Write a file, through to the disk."""
    with path.open("wb") as file:
        if isinstance(content, str):
            file.write(content.encode())
        elif isinstance(content, bytes):
            file.write(content)
        elif parquet:
            content.to_parquet(file, index=False)
        else:
            write_csv(content, file, for_spreadsheets=for_spreadsheets)
        file.flush()
        os.fsync(file.fileno())


def write_files(
    contents: Mapping[Path, pd.DataFrame | str | bytes], *, for_spreadsheets: bool = False
) -> None:
    """Write files: text, and tables as CSV or Parquet by the ending of the name.

    All are written beside their places, and through to the disk, before the first is put there; so
    a full disk, or a folder in a file's place, leaves every file as it was. Then they are put in
    their places one after the other. A process killed between two of these steps leaves the first
    files new and the others old, each of them complete. Where one cannot be put there, the others
    that are new are removed again.

    A new file has the mode that the umask leaves, one that was there keeps its own; through a link
    its target is written. ``for_spreadsheets`` is that of `write_csv`.
    """
    path = Path()
    replaced_paths: list[Path] = []
    try:
        with ExitStack() as stack:
            on_failure = stack.enter_context(ExitStack())
            replacements: list[tuple[Path, Path, Path]] = []
            for path, content in contents.items():
                target = Path(os.path.realpath(path))
                if target.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "a folder")
                sweep(target.parent)
                staged = stack.enter_context(staging(target))
                parquet = path.suffix.lower() == ".parquet"
                _write_through(staged, content, parquet=parquet, for_spreadsheets=for_spreadsheets)
                if target.exists():
                    staged.chmod(target.stat().st_mode & 0o7777)
                replacements.append((path, staged, target))
            for path, staged, target in replacements:
                is_new = not target.exists()
                staged.replace(target)
                if is_new:
                    on_failure.callback(target.unlink, missing_ok=True)
                else:
                    replaced_paths.append(path)
            on_failure.pop_all()
    except OSError as error:
        written = ", ".join(map(str, replaced_paths)) or "nothing"
        verb = "were" if len(replaced_paths) > 1 else "was"
        message = f"cannot write {path}: {reason(error)}; {written} {verb} written"
        raise ValueError(message) from None
