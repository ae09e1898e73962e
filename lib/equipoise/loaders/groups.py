"""Groups of documents in any file, data frame or dictionary that has them, as tidy tables.

A tidy table of memberships has the column document, maybe topic, and one column of shares per
group. Read are, each with a column of documents (document, docno, doc_id) and maybe topics:

- one column of names per grouping: ``docno,gender,age``;
- one row per document and group: ``document,group``, maybe with a column share;
- one column of shares per group: ``document,small,large``;
- the same for several groupings: ``document,SIZE=small,SIZE=large,KIND=x,KIND=y``;
- lines ``topic document p1 p2 ...``, as in FairWeb.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.errors import (
    InputError,
    Note,
    excerpt,
    input_error,
    listed,
    need_distinct_groups,
)
from equipoise.loaders.columns import ColumnFile
from equipoise.loaders.fairweb import TOLERANCE, numbered_groups, read_memberships, read_target
from equipoise.options import read_pairs
from equipoise.readers import ids_as_text, number, read_table
from equipoise.tidy import NAMES, frame_of, ids_of, names_in, numbers_of

Kind = Literal["nominal", "ordinal"]
Groups = tuple[pd.DataFrame, AttributeSet]

MISSING = ("unknown",)
"""Names in a column of groups that are no group: whose membership is missing."""
_NO_VALUE = ("", "na", "n/a", "#n/a", "<na>", "nan", "none", "null", "?", "-")
"""Words for an empty cell, in small letters, in tables of pandas and spreadsheets."""
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_TARGET_OF_NUMBERS = "--target gender=0:0.5,1:0.5"
_MOST_GROUPS = 1_000
"""A column with more names than this has ids, not groups."""


# --- several attribute sets -----------------------------------------------------------------------


def read_sets(
    source: Any,
    names: Sequence[str] = (),
    kinds: Mapping[str, Kind] | None = None,
    targets: Mapping[str, str] | None = None,
    sets: Mapping[str, AttributeSet] | None = None,
    missing: Sequence[str] = MISSING,
) -> dict[str, Groups]:
    """Group memberships of documents and their attribute sets, by name.

    ``source`` is a file, a data frame or a dictionary; it is read once. ``names`` are the sets to
    read, by default those that the columns name. By the name of a set, ``kinds`` are their kinds,
    and ``targets`` a file, ``uniform``, or ``group:number,...`` with ordinal groups in their order.
    ``sets`` need neither. ``missing`` is as in `tidy_memberships`.
    """
    kinds, targets, sets = kinds or {}, targets or {}, sets or {}
    file, table, label = None, None, ""
    if isinstance(source, (str, Path)):
        file, label = ColumnFile(source), str(source)
        # A header has commas, or semicolons or tabs; a line of FairWeb has numbers between tabs.
        last_name = file.first_line.split("\t")[-1]
        has_tabs = last_name != file.first_line and not re.fullmatch("[0-9.]+", last_name)
        if file.head.startswith(b"PAR1") or re.search("[,;{]", file.first_line) or has_tabs:
            table = read_table(source)
            source = table.frame
        elif not names:
            wanted = f"given with a name, such as GENDER={label}, or have a header docno,gender"
            wanted = f"shares of groups must be {wanted}"
            raise input_error(label, wanted, excerpt(file.first_line))
    if isinstance(source, pd.DataFrame):
        source = source.apply(_with_lists_joined)
    found = {}
    named = [*targets, *sets]
    for name in names or names_of_sets(source, label or "the memberships", named):
        kind = kinds.get(name, "nominal")
        attribute = sets.get(name) or _attribute_set(name, kind, targets.get(name, ""))
        if file is not None and table is None:
            found[name] = _of_fairweb(file, name, kind, attribute)
            continue
        try:
            found[name] = tidy_memberships(source, name, attribute, label, missing, kind)
        except InputError as error:
            if table is None:
                raise
            # Of a data frame rows are counted, of a file lines.
            raise InputError(
                replace(problem, line=problem.line and table.line(problem.line - 1))
                for problem in error.problems
            ) from None
    return found


def _with_lists_joined(column: pd.Series) -> pd.Series:
    """Return a column in which groups of a list, or of a list saved as text, have ; between them.

    >>> _with_lists_joined(pd.Series(["['Europe', 'Asia']", "[]", "Africa"])).tolist()
    ['Europe;Asia', '', 'Africa']
    """
    if column.dtype == object:
        is_list = column.map(lambda cell: isinstance(cell, (list, tuple, np.ndarray)))
        return column.mask(is_list, column[is_list].map(lambda cell: ";".join(map(str, cell))))
    if column.dtype != "str" or not column.str.startswith("[").any():
        return column
    is_list = column.str.fullmatch(r"\[(?:['\"].*['\"])?\]").fillna(value=False)
    texts = [";".join(text[1:-1] for text in _QUOTED.findall(cell)) for cell in column[is_list]]
    return column.mask(is_list, pd.Series(texts, column.index[is_list], dtype="str"))


def _attribute_set(name: str, kind: Kind, target: str) -> AttributeSet | None:
    """The attribute set of a target; None where its groups are left to the memberships."""
    if target in ("", "uniform"):
        return None
    # A file may have a colon in its name.
    if ":" in target and not Path(target).exists():
        shares = {group: number(share) for group, share in read_pairs(target).items()}
        return AttributeSet(name, kind, tuple(shares), np.array(list(shares.values())))
    return read_target(target, name, kind)


def _of_fairweb(file: ColumnFile, name: str, kind: Kind, attribute: AttributeSet | None) -> Groups:
    """Groups of lines of topic, document and shares."""
    n_groups = len(file.first_line.split()) - 2
    if file.first_line and n_groups < 2:
        wanted = "a header such as document,group with commas, or lines of topic, document, shares"
        raise input_error(file.path, wanted, excerpt(file.first_line), 1)
    if attribute is None:
        groups = numbered_groups(max(n_groups, 2))
        attribute = AttributeSet(name, kind, groups, np.ones(len(groups)))
    return read_memberships(file.path, attribute), attribute


def names_of_sets(table: pd.DataFrame, label: str, named: Sequence[str] = ()) -> list[str]:
    """Return the names of the attribute sets of a table: of its columns of names, and ``A=x``.

    A column of numbers has groups where its set is among those ``named``, with a target.
    """
    names_in(table, ["document"], label)
    by_share = dict.fromkeys(
        str(column).partition("=")[0] for column in table.columns if "=" in str(column)
    )
    others = table[[column for column in table.columns if "=" not in str(column)]]
    are_names = _columns_of_names(others)
    columns = [column for column in map(str, others.columns) if column in {*are_names, *named}]
    if not columns and not by_share:
        wanted = "a table with a column that names the group of each document, such as gender;"
        wanted += f" numbers are shares unless a target names them ({_TARGET_OF_NUMBERS})"
        raise input_error(label, wanted, f"columns {listed(table.columns)}")
    id_columns = {*NAMES["document"], *NAMES["topic"], *NAMES["share"]}
    unread = [column for column in others.columns if column not in (*columns, *id_columns)]
    if unread:
        note = f"{label}, not read: column {listed(unread)} of numbers, not of names of groups"
        note += f" (numbers that a target names are groups: {_TARGET_OF_NUMBERS})"
        warnings.warn(note, Note, 2)
    # A title or a name of a person is not a group: most of many rows have their own.
    n_rows = len(table)
    titles = [column for column in columns if n_rows >= 20 and table[column].nunique() > n_rows / 2]
    if titles and len(titles) < len(columns):
        note = f"{label}, not read: column {listed(titles)}, whose values differ in most rows"
        warnings.warn(note, Note, 2)
        columns = [column for column in columns if column not in titles]
    return [*columns, *by_share]


def _columns_of_names(table: pd.DataFrame) -> list[str]:
    """Return the columns that have names of groups, not ids of documents or numbers."""
    id_columns = {*NAMES["document"], *NAMES["topic"], *NAMES["share"]}
    columns = []
    for column, values in table.items():
        is_id = column in id_columns or not str(column).strip()
        if is_id or pd.api.types.is_numeric_dtype(values):
            continue
        # An empty cell is no name: it is missing, among names as among numbers.
        cells = values[values.notna() & (values.astype("str").str.strip() != "")]
        numbers = pd.to_numeric(cells, errors="coerce")
        # Among shares a word is a fault, and no name of a group.
        has_shares = numbers.between(0, 1).mean() > 0.5
        if numbers.isna().any() and not has_shares:
            columns.append(str(column))
    return columns


# --- one attribute set ----------------------------------------------------------------------------


def tidy_memberships(
    source: Any,
    name: str,
    attribute: AttributeSet | None = None,
    file: str = "",
    missing: Sequence[str] = MISSING,
    kind: Kind = "nominal",
) -> Groups:
    """Return group memberships as columns document and a share for each group, and their set.

    They have a column topic where they are for one topic only. ``source`` has the group of
    each document, or the shares of groups. A document with several groups belongs to each equally.
    The column of groups is called like the set, or group, or is the only one that has names.
    Without an attribute set the groups are those found, by name, of a kind, with equal targets;
    columns of shares are in the order of ordinal groups, names are in none. A row
    whose group is empty or ``missing`` is left out, and a note counts them; a group of the
    attribute set is never missing.

    >>> table, sets = tidy_memberships({"d1": "large", "d2": "small"}, "SIZE")
    >>> table
      document  large  small
    0       d1    1.0    0.0
    1       d2    0.0    1.0
    """
    label = file or f"the memberships in {name}"
    table = source if isinstance(source, pd.DataFrame) else _as_frame(source, label)
    table = table.reset_index(drop=True)
    names = names_in(table, ["document"], label, ["topic", "group", "share"])
    id_names = {column: names[column] for column in ("topic", "document") if column in names}
    ids = pd.DataFrame(
        {
            column: ids_of(table[other], label, column).str.strip()
            for column, other in id_names.items()
        }
    )
    own_columns = [column for column in table.columns if str(column).startswith(f"{name}=")]
    if own_columns:
        table = table[own_columns].rename(columns=lambda column: column.removeprefix(f"{name}="))
    else:
        names |= _column_of_set(table, name, names, attribute, label)
    columns = set(map(str, table.columns))
    if attribute is not None and set(attribute.groups) <= columns:
        tidy = _columns_of_groups(table, ids, list(attribute.groups), label)
    elif "group" in names and not own_columns:
        groups = list(attribute.groups) if attribute is not None else []
        tidy = _rows_of_groups(table, ids, names, name, groups, missing, label)
    else:
        no_groups = {*names.values(), *NAMES["topic"]}
        groups = [str(column) for column in table.columns if column not in no_groups]
        if attribute is not None or len(groups) < 2:
            wanted = listed(attribute.groups) if attribute is not None else "each group"
            wanted = f"a table with a column group, or columns for {wanted}; numbers are shares"
            wanted += f" unless a target names them ({_TARGET_OF_NUMBERS})"
            raise input_error(label, wanted, f"columns {listed(table.columns)}")
        tidy = _columns_of_groups(table, ids, groups, label)
    if attribute is None:
        groups = [column for column in tidy.columns if column not in ids.columns]
        if kind == "ordinal" and not set(groups) <= columns:
            wanted = f"given with a target that orders them, such as {name}=low:1,middle:1,high:1"
            raise input_error(label, f"ordinal groups must be {wanted}", column=name)
        attribute = AttributeSet(name, kind, tuple(groups), np.ones(len(groups)))
    return tidy, attribute


def _as_frame(source: Any, label: str) -> pd.DataFrame:
    """Return memberships as a data frame: from groups or shares by document, or any other kind."""
    if not isinstance(source, Mapping):
        return frame_of(source, label, "group")
    if all(isinstance(shares, Mapping) for shares in source.values()):
        table = pd.DataFrame.from_dict(source, orient="index").fillna(0.0)
        return table.rename_axis("document").reset_index()
    return pd.DataFrame({"document": list(source), "group": list(source.values())})


def _column_of_set(
    table: pd.DataFrame,
    name: str,
    names: Mapping[str, str],
    attribute: AttributeSet | None,
    label: str,
) -> dict[str, str]:
    """Return the column of a set's groups as the column group, where it has another name."""
    # A target says that numbers are groups.
    if name in table.columns and (attribute is not None or _columns_of_names(table[[name]])):
        return {"group": name}
    columns = [] if "group" in names else _columns_of_names(table)
    if len(columns) > 1:
        wanted = f"a table with a column {name}"
        raise input_error(label, wanted, f"columns {listed(columns)}")
    return {"group": columns[0]} if columns else {}


def _columns_of_groups(
    table: pd.DataFrame, ids: pd.DataFrame, groups: Sequence[str], label: str
) -> pd.DataFrame:
    """Return memberships from a table with a column of shares for each group."""
    cells = table.rename(columns=str)[groups]
    shares = cells.apply(pd.to_numeric, errors="coerce").astype("float64")
    # NaN is at no distance from 1.
    is_good = (shares >= 0).all(axis=1) & ((shares.sum(axis=1) - 1).abs() <= TOLERANCE)
    if not is_good.all():
        found = excerpt(list(cells[~is_good].iloc[0]))
        wanted = f"shares of {listed(groups)} from 0, with a sum of 1"
        raise _row_error(label, ids, ~is_good, wanted, found)
    is_repeated = ids.duplicated()
    if is_repeated.any():
        raise _row_error(label, ids, is_repeated, "a document once", "a second row")
    return ids.assign(**shares)


def _rows_of_groups(
    table: pd.DataFrame,
    ids: pd.DataFrame,
    names: Mapping[str, str],
    name: str,
    groups: Sequence[str],
    missing: Sequence[str],
    label: str,
) -> pd.DataFrame:
    """Return memberships from rows of a document and a group; its shares get a sum of 1."""
    # As of ids, a whole number is the same as 1 and as 1.0.
    group = ids_as_text(table[names["group"]]).astype("str").fillna("").str.strip()
    has_several = group.str.contains("[;|]") & ~group.isin(groups)
    if has_several.any():
        rows = f"{has_several.sum()} of {len(group)} rows"
        note = f"{label}: several groups, separated by ; or |, in {name} for {rows}"
        warnings.warn(note, Note, 2)
        group = group.astype("object").mask(has_several, group.str.split("[;|]")).explode()
        group = group.astype("str").str.strip()
        # The index stays, by which an error names the row.
        table, ids = table.loc[group.index], ids.loc[group.index]
    is_missing = group.isin(missing) | group.str.lower().isin(_NO_VALUE)
    is_missing &= ~group.isin(groups)
    if is_missing.any():
        counts = group[is_missing].value_counts()
        reasons = [f"{count} {excerpt(text)}" for text, count in counts.items()]
        message = f"{label}: no group in {name} for {is_missing.sum()} of {len(group)} rows"
        warnings.warn(f"{message} ({', '.join(reasons)})", Note, 2)
        table, ids, group = table[~is_missing], ids[~is_missing], group[~is_missing]
    share = pd.Series(1.0, table.index)
    if "share" in names:
        share = numbers_of(table[names["share"]], label, "share")
    groups = list(groups) or sorted(group.unique())
    need_distinct_groups(groups, f"{label}: ")
    if len(groups) < 2:
        wanted = "names of two or more groups in its column"
        found = listed(map(excerpt, groups)) or "none"
        raise input_error(label, wanted, found, column=str(group.name))
    if len(groups) > _MOST_GROUPS:
        wanted = f"a column of at most {_MOST_GROUPS:,} groups, not of ids"
        raise input_error(label, wanted, f"{len(groups):,} names", column=str(group.name))
    is_bad = ~group.isin(groups) | (share <= 0)
    if is_bad.any():
        place = int(np.flatnonzero(is_bad)[0])
        found = f"{excerpt(group.iloc[place])} with a share of {share.iloc[place]:g}"
        wanted = f"one of the groups {listed(groups)}, with a share above 0"
        raise _row_error(label, ids, is_bad, wanted, found)
    rows = ids.assign(group=pd.Categorical(group, groups), share=share)
    is_repeated = rows.duplicated([*ids.columns, "group"])
    if is_repeated.any():
        found = f"{rows.loc[is_repeated, 'group'].iloc[0]} again"
        raise _row_error(label, ids, is_repeated, "a document once per group", found)
    wide = rows.pivot_table(
        index=list(ids.columns),
        columns="group",
        values="share",
        fill_value=0.0,
        observed=False,
        sort=False,
    )
    shares = wide.div(wide.sum(axis=1), axis=0).reindex(columns=groups, fill_value=0.0)
    return shares.set_axis(groups, axis=1).reset_index()  # names, no longer categories


def _row_error(label: str, ids: pd.DataFrame, is_bad: Any, wanted: str, found: str) -> InputError:
    """The error of the first bad row, which is counted from 1, and named by its ids."""
    place = int(np.flatnonzero(is_bad)[0])
    names = ", ".join(f"{column} {ids[column].iloc[place]}" for column in ids.columns)
    return input_error(label, wanted, f"{found} for {names}", int(ids.index[place]) + 1)


# --- for people in Python -------------------------------------------------------------------------


def tidy_sets(
    memberships: Any, attributes: Mapping[str, Any]
) -> tuple[dict[str, pd.DataFrame], dict[str, AttributeSet]]:
    """Memberships and attribute sets by name.

    ``memberships`` are by the name of a set, a file or table, or the groups of documents in one set
    named ``group``. ``attributes`` are `AttributeSet` by name or inputs of `attribute_sets`; the
    default are the groups found.
    """
    plain = {
        name: entry for name, entry in attributes.items() if not isinstance(entry, AttributeSet)
    }
    sets = {**attributes, **(attribute_sets(plain) if plain else {})}
    if _has_several_sets(memberships, sets):
        found = read_sets(memberships, list(sets), sets=sets)
    else:
        if not _is_by_set(memberships, sets):
            only_name = next(iter(sets)) if len(sets) == 1 else "group"
            memberships = {only_name: memberships}
        found = {}
        for name, members in memberships.items():
            found |= read_sets(members, [name], sets=sets)
    tables = {name: table for name, (table, _) in found.items()}
    return tables, sets or {name: attribute for name, (_, attribute) in found.items()}


def _has_several_sets(memberships: Any, sets: Mapping[str, Any]) -> bool:
    """Whether memberships are one file or table whose columns may belong to several sets."""
    if not isinstance(memberships, pd.DataFrame):
        return isinstance(memberships, (str, Path))
    has_shares_of_sets = any("=" in str(column) for column in memberships.columns)
    return bool(sets) or has_shares_of_sets or bool(_columns_of_names(memberships))


def _is_by_set(memberships: Any, sets: Mapping[str, Any]) -> bool:
    """Whether memberships come by the names of attribute sets, not those of one set's documents."""
    if not isinstance(memberships, Mapping):
        return False
    if not memberships or set(memberships) & set(sets):
        return True
    value = next(iter(memberships.values()))
    if isinstance(value, Mapping):
        return not isinstance(next(iter(value.values()), ""), Real)  # no shares by group
    entries = memberships.values()
    if all(isinstance(entry, (str, Path)) and Path(entry).is_file() for entry in entries):
        return True
    return not isinstance(value, (str, int))  # no group's name
