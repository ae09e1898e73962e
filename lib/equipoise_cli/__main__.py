"""``python -m equipoise_cli``: the command without its entry point."""

from equipoise_cli import main

main()
