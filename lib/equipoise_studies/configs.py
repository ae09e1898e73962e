"""Configs of studies: settings, the files that they name, and errors that name a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo

from equipoise.readers import read_yaml
from equipoise_compendium import project


def _resolved(path: Path, info: ValidationInfo) -> Path:
    if path.parts[:1] == ("data",):
        return project.root() / path
    return Path((info.context or {}).get("folder", "")) / path


ConfigPath = Annotated[Path, AfterValidator(_resolved)]
"""A file relative to the config or, if its name begins with ``data/``, in the repository."""


class Settings(BaseModel):
    """A part of a config; unknown settings and infinite numbers are rejected."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )


Study = TypeVar("Study", bound=Settings)


def read_config(model: type[Study], folder: str, name: str) -> Study:
    """Read a config: a YAML file, or a name in ``data/studies/<folder>``."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = project.data_path("studies", folder, f"{name}.yaml")
    content = read_yaml(path)
    try:
        return model.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{path.name}: {place}: {first['msg']}, got {first['input']!r:.80}"
        raise ValueError(message) from None
