"""The loop that fine-tunes rankers and estimators."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from equipoise.arrays import Integers
from equipoise_studies.systems import models_package


def descend(
    modules: Sequence[Any],
    plan: Sequence[Integers],
    loss_of: Callable[[Integers], Any],
    what: str,
    *,
    rate: float,
    optimiser: Literal["adam", "adamw"] = "adamw",
    warm: int = 0,
    checkpoint: Path | None = None,
    draws: np.random.Generator | None = None,
    constant: bool = False,
    after: Callable[[int], None] | None = None,
) -> list[float]:
    """Minimise with Adam or AdamW: linear warm-up, linear decay, gradients clipped at 1.

    ``modules``: what is trained, on one device, with dropout or without as they are set. ``plan``:
    row numbers of every step. ``loss_of``: the loss of these rows. ``what``: label of the progress
    bar. ``rate``: the highest learning rate. ``warm``: steps of warm-up, by default a tenth of
    them. ``checkpoint``: a file to go on from, saved every 100 steps and at the end; it holds
    tensors only and is never unpickled. ``draws``: what the loss draws from; with PyTorch's own,
    its state is in the checkpoint. ``constant``: the rate neither rises nor falls. ``after``:
    called after each step with the number of steps done. Returns the loss of each step.
    """
    torch = models_package("torch")
    module = torch.nn.ModuleList(modules)
    optimisers = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    descent = optimisers[optimiser](module.parameters(), lr=rate)
    steps = len(plan)
    warm = warm or max(1, steps // 10)
    losses: list[float] = []
    if checkpoint and checkpoint.is_file():
        device = next(module.parameters()).device
        saved = torch.load(checkpoint, weights_only=True, map_location=device)
        module.load_state_dict(saved["modules"])
        descent.load_state_dict(saved["optimiser"])
        _draw_on(torch, saved, draws)
        losses = saved["losses"].tolist()

    steps_left = range(len(losses), steps)
    for step in tqdm(steps_left, desc=what, initial=len(losses), total=steps, mininterval=10):
        rising = (step + 1) / warm
        falling = (steps - step) / max(1, steps - warm)
        descent.param_groups[0]["lr"] = rate if constant else rate * min(rising, falling)
        loss = loss_of(plan[step])
        descent.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        descent.step()
        losses.append(float(loss.detach()))
        if after is not None:
            after(step + 1)
        if checkpoint and ((step + 1) % 100 == 0 or step + 1 == steps):
            state = {
                "modules": module.state_dict(),
                "optimiser": descent.state_dict(),
                "losses": torch.tensor(losses, dtype=torch.float64),
                **_drawing(torch, draws),
            }
            put_in_place(state, checkpoint)
    return losses


def put_in_place(state: dict[str, Any], path: Path) -> None:
    """Save tensors whole or not at all, so that an interruption leaves the last good ones."""
    part = path.with_name(f"{path.name}.part")
    models_package("torch").save(state, part)
    part.replace(path)


def _drawing(torch: Any, draws: np.random.Generator | None) -> dict[str, Any]:
    """States of what is drawn from, each a tensor."""
    states = {"random": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["random of the card"] = torch.cuda.get_rng_state()
    if draws is not None:
        # its state holds whole numbers of 128 bits, which no tensor takes
        text = json.dumps(draws.bit_generator.state).encode()
        states["draws"] = torch.tensor(list(text), dtype=torch.uint8)
    return states


def _draw_on(torch: Any, saved: dict[str, Any], draws: np.random.Generator | None) -> None:
    """Put back the states that `_drawing` saved."""
    torch.set_rng_state(saved["random"].cpu())
    if "random of the card" in saved and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved["random of the card"].cpu())
    if draws is not None:
        text = bytes(saved["draws"].cpu().tolist())
        draws.bit_generator.state = json.loads(text)
