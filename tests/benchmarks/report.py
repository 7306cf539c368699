"""What a measure says: one line of JSON, with the baseline that was taken in the same run (DESIGN 11)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from runhost.protocol import JsonValue

DIGITS = 4


@dataclass(frozen=True)
class Budget:
    """Bounds on a value in its own unit, on its ratio to the baseline, or on both; None bounds nothing."""

    value_at_most: float | None = None
    ratio_at_most: float | None = None
    ratio_at_least: float | None = None

    def __str__(self) -> str:
        bounds = (("value <=", self.value_at_most), ("ratio <=", self.ratio_at_most), ("ratio >=", self.ratio_at_least))
        return " and ".join(f"{name} {bound:g}" for name, bound in bounds if bound is not None) or "none"

    def is_met(self, value: float, ratio: float) -> bool:
        """Say whether all bounds hold."""
        return (
            (self.value_at_most is None or value <= self.value_at_most)
            and (self.ratio_at_most is None or ratio <= self.ratio_at_most)
            and (self.ratio_at_least is None or ratio >= self.ratio_at_least)
        )


@dataclass(frozen=True)
class Line:
    """One measure.

    Attributes:
        value: In ``unit``, as is ``baseline``.
        settings: What it depends on: sizes, samples, servers.
    """

    name: str
    value: float
    unit: str
    baseline: float
    budget: Budget
    settings: Mapping[str, JsonValue]

    @property
    def ratio(self) -> float:
        """How many times the baseline the value is."""
        return self.value / self.baseline if self.baseline else 0.0

    @property
    def is_ok(self) -> bool:
        """Whether the budget is met."""
        return self.budget.is_met(self.value, self.ratio)

    def encode(self, settings: Mapping[str, JsonValue]) -> str:
        """Return the line, with the settings that all measures of this run share."""
        return json.dumps(
            {
                "name": self.name,
                "value": shortened(self.value),
                "unit": self.unit,
                "baseline": shortened(self.baseline),
                "ratio": shortened(self.ratio),
                "budget": str(self.budget),
                "ok": self.is_ok,
                "settings": {**self.settings, **settings},
            }
        )


def shortened(number: float) -> float:
    """Return a number with as many digits as a measurement has."""
    return float(f"{number:.{DIGITS}g}")
