"""The training loop: against PyTorch's own schedule, and stopped in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="training needs PyTorch: pip install 'equipoise[models]'"
)

from equipoise_studies.training import descend  # noqa: E402

RATE, ROWS = 0.05, np.arange(48).reshape(12, 4) % 16


def setting() -> tuple[Any, Any]:
    """A small network with dropout, and the loss of some rows."""
    torch.manual_seed(3)
    inputs, wanted = torch.randn(16, 5), torch.randint(0, 2, (16,))
    network = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)
    ).train()

    def loss_of(rows: Any) -> Any:
        return torch.nn.functional.cross_entropy(network(inputs[rows]), wanted[rows])

    return network, loss_of


@pytest.mark.parametrize(("optimiser", "warm"), [("adamw", 0), ("adam", 5)])
def test_steps_are_those_of_pytorchs_own_schedule(optimiser: Any, warm: int) -> None:
    network, loss_of = setting()
    found = descend([network], list(ROWS), loss_of, "t", rate=RATE, optimiser=optimiser, warm=warm)
    ours = [part.detach().clone() for part in network.parameters()]
    network, loss_of = setting()
    first, made = warm or 1, torch.optim.AdamW if optimiser == "adamw" else torch.optim.Adam
    descent, expected = made(network.parameters(), lr=RATE), []
    pace = torch.optim.lr_scheduler.LambdaLR(
        descent, lambda step: min((step + 1) / first, (12 - step) / (12 - first))
    )
    for rows in ROWS:
        loss = loss_of(rows)
        descent.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        descent.step()
        pace.step()
        expected.append(loss.item())
    assert found == pytest.approx(expected, rel=1e-5)
    for one, other in zip(ours, network.parameters(), strict=True):
        assert one.numpy() == pytest.approx(other.detach().numpy(), abs=1e-6)


def test_what_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    plan = [ROWS[step % 12] for step in range(150)]
    network, loss_of = setting()
    whole = descend([network], plan, loss_of, "t", rate=RATE)
    last = [part.detach().clone() for part in network.parameters()]
    network, loss_of = setting()
    calls = iter(range(120))

    def stops(rows: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return loss_of(rows)

    kept = tmp_path / "kept.pt"
    with pytest.raises(KeyboardInterrupt):
        descend([network], plan, stops, "t", rate=RATE, checkpoint=kept)
    network, loss_of = setting()
    torch.manual_seed(99)
    taken: list[Any] = []

    def counted(rows: Any) -> Any:
        taken.append(rows)
        return loss_of(rows)

    again = descend([network], plan, counted, "t", rate=RATE, checkpoint=kept)
    assert len(taken) == 50
    assert again == whole
    assert all(
        torch.equal(one, other) for one, other in zip(last, network.parameters(), strict=True)
    )
    assert (
        descend([network], plan, stops, "t", rate=RATE, checkpoint=kept) == whole
    )  # no step is left


def test_what_the_loss_draws_goes_on_too(tmp_path: Path) -> None:
    """Negatives are drawn step by step: a stage that goes on draws what it would have drawn."""
    plan = [ROWS[step % 12] for step in range(130)]

    def run(stop_after: int | None, checkpoint: Path | None) -> list[float]:
        network, loss_of = setting()
        draws = np.random.default_rng(7)
        calls = 0

        def drawing(rows: Any) -> Any:
            nonlocal calls
            calls += 1
            if stop_after is not None and calls > stop_after:
                raise KeyboardInterrupt
            return loss_of(rows) + loss_of(draws.integers(16, size=4))

        return descend([network], plan, drawing, "t", rate=RATE, checkpoint=checkpoint, draws=draws)

    whole = run(None, None)
    with pytest.raises(KeyboardInterrupt):
        run(110, tmp_path / "kept.pt")
    assert run(None, tmp_path / "kept.pt") == whole


def test_a_constant_rate_stays_and_each_step_is_told() -> None:
    network, loss_of = setting()
    told: list[int] = []
    rates: list[float] = []
    step = torch.optim.AdamW.step

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", noted)
        descend([network], list(ROWS), loss_of, "t", rate=RATE, constant=True, after=told.append)
    assert rates == [RATE] * 12
    assert told == list(range(1, 13))
