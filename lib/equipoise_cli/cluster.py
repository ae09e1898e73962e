"""Tasks of a command, one per file, on this machine or on a Dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def cluster(address: str | None) -> Iterator[Executor | None]:
    """Connect to the Dask scheduler at an address; return None without an address.

    The workers need this library, and the same files under the same paths.
    """
    if address is None:
        yield None
        return
    try:
        client = import_module("distributed").Client(address, timeout=10)  # seconds
    except ModuleNotFoundError:
        raise ValueError(
            "--cluster: Dask not found; in your clone, run python -m pip install '.[cluster]'"
        ) from None
    except (OSError, TimeoutError, ValueError):
        raise ValueError(
            f"no Dask scheduler answers at {address}; give an address such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        yield client.get_executor(pure=False)


def run_each(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    executor: Executor | None,
    unit: str,
) -> list[Any]:
    """Run a function for each task's arguments; return the results in their order.

    A progress bar on standard error counts the ``unit``.
    """
    from tqdm import tqdm

    run: Any = map if executor is None else executor.map
    results = run(function, *zip(*tasks, strict=True))
    return list(tqdm(results, total=len(tasks), unit=unit, file=sys.stderr, disable=None))
