"""Tasks of a command, one per file, on this machine or on a Dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Return a client of the Dask scheduler at an address; return None without an address.

    The workers need this library, and the same files under the same paths.
    """
    if address is None:
        yield None
        return
    try:
        client = import_module("distributed").Client(address, timeout=10)  # seconds
    except ModuleNotFoundError:
        raise ValueError(
            "--cluster needs Dask, which is not installed; in your clone, run python -m pip "
            "install '.[cluster]'"
        ) from None
    except (OSError, TimeoutError, ValueError):
        raise ValueError(
            f"no Dask scheduler answers at {address}; give an address such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        yield client


def run_each(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    client: Any,
    unit: str,
    **shared: Any,
) -> list[Any]:
    """Run a function for each task's arguments; return the results in their order.

    ``client``: of `cluster`. ``shared``: arguments of all tasks, which a cluster gets once. A
    progress bar on standard error counts the ``unit``.
    """
    from tqdm import tqdm

    if client is None:
        results: Any = (function(*task, **shared) for task in tasks)
    else:
        # Each in a list, as Dask would send the items of a dictionary one by one.
        copies = {
            name: client.scatter([value], broadcast=True, hash=False)[0]
            for name, value in shared.items()
        }
        futures = [client.submit(function, *task, **copies, pure=False) for task in tasks]
        results = (future.result() for future in futures)
    return list(tqdm(results, total=len(tasks), unit=unit, file=sys.stderr, disable=None))
