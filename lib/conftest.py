"""Doctests of modules that need the extra ``models`` run only where it is installed."""

from importlib.util import find_spec

NEED_TORCH = [
    f"equipoise_studies/query_by_example/{name}.py"
    for name in ("neural", "trainer", "training", "record")
]
collect_ignore = [] if find_spec("torch") else NEED_TORCH


def pytest_report_header() -> str | None:
    """Say what is left out, and why."""
    if not collect_ignore:
        return None
    remedy = "pip install '.[models]'"
    return f"no doctests of {', '.join(collect_ignore)}: they need PyTorch ({remedy})"
