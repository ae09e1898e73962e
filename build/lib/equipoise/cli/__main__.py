"""``python -m equipoise.cli``: the command without its entry point."""

from equipoise.cli import main

main()
