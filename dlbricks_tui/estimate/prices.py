"""The price of an hour of each system: a table that the user can change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.estimate.errors import PricesError
from dlbricks_tui.estimate.toml_file import parse_toml, read_text

PRICES_FILE = "prices.toml"
_WHAT = "prices file"
_TABLE = "dollars_per_hour"
_HOURS_PER_MS = 1.0 / 3_600_000.0
# No machine costs more. Without a limit costs could overflow.
_HIGHEST = 1_000_000

# On demand, Linux, us-east-1, when the paper's experiments were made (2019 and 2020).
DELIVERED: Mapping[str, float] = {
    "c4.xlarge": 0.199,
    "c4.2xlarge": 0.398,
    "c5.xlarge": 0.17,
    "c5.2xlarge": 0.34,
}


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per hour by the id, the name or the instance type of a system."""

    per_hour: Mapping[str, float]

    def of(self, names: Iterable[str]) -> float | None:
        """Return the price of the first of these names that has one."""
        return next((self.per_hour[name] for name in names if name in self.per_hour), None)


def cost_of(latency_ms: float, dollars_per_hour: float, inferences: int = 1_000_000) -> float:
    """Return the dollars for inferences one after another, on a machine that does nothing else."""
    return latency_ms * _HOURS_PER_MS * dollars_per_hour * inferences


def read_prices(data: Path) -> Prices:
    """Return the built-in prices, overridden by those of the user's file, if there is one."""
    file = data / PRICES_FILE
    if not file.exists():
        return Prices(DELIVERED)
    own = parse_prices(read_text(file, _WHAT, PricesError), f"{_WHAT} {file}")
    return Prices({**DELIVERED, **own})


def parse_prices(text: str, where: str) -> dict[str, float]:
    """Return the prices in a TOML text; `where` names the text in error messages."""
    document = parse_toml(text, where, PricesError)
    table = document.pop(_TABLE, None)
    if document or not isinstance(table, dict):
        raise PricesError(f'{where} needs one table, [{_TABLE}], with lines such as "c5.xlarge" = 0.17')
    prices = dict(_flat(table))
    for name, price in prices.items():
        if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price <= _HIGHEST:
            raise PricesError(f'{where}: {name} costs {price!r}; write dollars, such as "{name}" = 0.17')
    return {name: float(price) for name, price in prices.items()}


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # In TOML an unquoted name with dots is a table within a table, but users mean the name.
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{rest}", price) for rest, price in _flat(value))
        else:
            yield name, value
