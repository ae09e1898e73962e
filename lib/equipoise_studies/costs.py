"""What models cost before any is run: hours on two machines, and the money of an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise_studies.systems import Device

TOKENS_A_WORD = 1.4
"""Of English in a language model's vocabulary, about."""

WEIGHTS_OF_BASE = 85_000_000
"""Of a BERT of base size, but for its table of tokens, which takes no time."""

MACHINES: dict[Device, str] = {"cuda": "an RTX 3090", "cpu": "two cores"}

OPERATIONS_A_SECOND: dict[Device, float] = {"cuda": 1.5e13, "cpu": 1.2e11}
"""Of the card: under half of what its maker states for single precision, not measured here. Of the
processor: measured, with a BERT of base size in single precision."""


@dataclass(frozen=True)
class Work:
    """What a model reads and learns from, in tokens; ``weights``: its size."""

    read: float = 0.0
    learned: float = 0.0
    weights: float = WEIGHTS_OF_BASE

    def seconds(self, device: Device) -> float:
        """Time on a machine: two operations a weight and token to read it, six to learn from it."""
        operations = self.weights * (2 * self.read + 6 * self.learned)
        return operations / OPERATIONS_A_SECOND[device]

    def __mul__(self, share: float) -> Work:
        """A share of it."""
        return Work(share * self.read, share * self.learned, self.weights)


def times(works: Sequence[Work]) -> str:
    """The time that models take on each machine, in words."""
    phrases = []
    for device, machine in MACHINES.items():
        seconds = sum(work.seconds(device) for work in works)
        phrases.append(f"{hours(seconds)} on {machine}")
    return f"about {', or '.join(phrases)}"


def hours(seconds: float) -> str:
    """A time as a reader plans it: minutes, hours or days."""
    if seconds < 5400:
        return f"{max(1, round(seconds / 60))} min"
    if seconds < 3 * 86_400:
        return f"{seconds / 3600:,.0f} h"
    return f"{seconds / 86_400:,.0f} days"


@dataclass(frozen=True)
class Calls:
    """Calls of an endpoint.

    ``words``: of all their prompts. ``most_tokens``: of an answer. ``prices``: of a million tokens
    of prompt, and of answer, in ``currency``; none of a server of one's own.
    """

    number: int
    words: float
    most_tokens: int
    prices: Sequence[float] = ()
    currency: str = "USD"

    @property
    def prompt_tokens(self) -> float:
        """Tokens that are read, about."""
        return self.words * TOKENS_A_WORD

    @property
    def answer_tokens(self) -> int:
        """Tokens that are written, at most."""
        return self.number * self.most_tokens

    @property
    def price(self) -> float:
        """What they cost at most."""
        if not self.prices:
            return 0.0
        prompt_price, answer_price = self.prices
        return (self.prompt_tokens * prompt_price + self.answer_tokens * answer_price) / 1e6

    def work(self, weights: float) -> Work:
        """What a model of so many weights does: many at once, it writes as fast as it reads."""
        return Work(read=self.prompt_tokens + self.answer_tokens, weights=weights)

    def __str__(self) -> str:
        """What they take, in words."""
        text = (
            f"calls: {self.number:,}, tokens of prompts about {_rounded(self.prompt_tokens)}, "
            f"of answers at most {_rounded(self.answer_tokens)}"
        )
        if self.prices:
            text += f", about {_rounded(self.price)} {self.currency} at most"
        return text


def all_calls(calls: Sequence[Calls]) -> str:
    """How many there are together, and what they cost in each currency, in words."""
    prices: dict[str, float] = {}
    for call in calls:
        if call.prices:
            prices[call.currency] = prices.get(call.currency, 0.0) + call.price
    text = f"{sum(call.number for call in calls):,}"
    for currency, price in prices.items():
        text += f", about {_rounded(price)} {currency} at most"
    return text


def _rounded(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:,.1f} million"
    return f"{number:,.0f}"
