"""How long a notebook takes to read, without an appendix, folded tables and code."""

import re

import nbformat

WORDS_A_MINUTE = (
    238  # silent reading of non-fiction in English, mean over 190 studies (Brysbaert 2019)
)
SECONDS_A_TABLE = 20  # or figure
STATED = re.compile(
    r"^\*\*Reading time\.\*\* About (\d+) minutes?(?:, without the appendix)?\.$", re.MULTILINE
)


def minutes(notebook: nbformat.NotebookNode) -> float:
    """Minutes that an executed notebook takes."""
    words = shown = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if cell.source.startswith("## Appendix"):
                break
            words += len(cell.source.split())
        elif cell.source.strip() != "report.finish()":
            for data in (output.get("data", {}) for output in cell.outputs):
                if (
                    "image/png" in data
                    or 'class="equipoise-table"' in data.get("text/html", "")[:40]
                ):
                    shown += 1
                elif "<details>" in data.get("text/html", ""):
                    open_part = data["text/html"].partition("<details>")[0]
                    words += len(re.sub(r"<[^>]+>", " ", open_part).split())
                else:
                    words += len(data.get("text/markdown", "").split())
    return words / WORDS_A_MINUTE + shown * SECONDS_A_TABLE / 60
