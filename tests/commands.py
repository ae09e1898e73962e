"""The command ``equipoise``, called as it is typed."""

from click.testing import CliRunner, Result

from equipoise_cli import main


def called(*words: object, **how: bool) -> Result:
    """What the command says to these words."""
    return CliRunner().invoke(main, [str(word) for word in words], **how)  # type: ignore[arg-type]
