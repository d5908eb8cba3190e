"""The progress of a run in words, and what sentences about a run consist of.

Sentences about events are in `events`, which takes longer to import.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.wording.numbers import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.host.noise import HostLoad
    from dlbricks_tui.host.queue import Place


def how_far_in_line(place: Place) -> str:
    """Return how far the work is that measures: `41 %, 2 min`; empty if that is not known."""
    share = [] if place.share is None else [percent(place.share)]
    return ", ".join(share + ([] if place.seconds_left is None else [duration(place.seconds_left)]))


def line_of_work(places: Sequence[Place]) -> str:
    """Return the work on this host in one line: `squeezenet1.1 41 %, 2 min; then alexnet, trace of 320n`."""
    now = [" ".join(filter(None, (it.brief, how_far_in_line(it)))) for it in places if it.measures]
    then = ", ".join(it.brief for it in places if not it.measures)
    return "; ".join([*now, *([f"then {then}" if now else f"waiting: {then}"] if then else [])])


class Tone(Enum):
    """The weight of a sentence; the value is the style that a screen writes it in."""

    COURSE = "text"
    ASIDE = "muted"
    DOUBT = "warn"
    FAILURE = "bad"


class Phrase(NamedTuple):
    """A few words about a run, with the time of the event that they are about, if it is one."""

    text: str
    tone: Tone = Tone.COURSE
    when: str = ""


# A smaller share that a hypervisor takes is no reason to worry.
_STOLEN_WORTH_TELLING = 0.01


def load_in_words(load: HostLoad) -> str:
    """Return the load of a host: `1.9 of 2 cores busy`, and what other guests of its hypervisor took."""
    stolen = load.stolen_share
    taken = f", {percent(stolen)} taken by other guests" if stolen >= _STOLEN_WORTH_TELLING else ""
    return f"{load.busy_cores:.1f} of {counted(load.cores, 'core')} busy{taken}"


# The workbench itself and other small programs take less.
_QUIET_SHARE = 0.1


def host_in_words(load: HostLoad) -> str:
    """Return how busy a host is in words that seldom change: `host quiet`, `host busy: 2 of 8 cores`."""
    if load.stolen_share >= _QUIET_SHARE:
        return "other guests take host time"
    if load.busy_cores <= _QUIET_SHARE * load.cores:
        return "host quiet"
    return f"host busy: {max(1, round(load.busy_cores))} of {counted(load.cores, 'core')}"


class Done(NamedTuple):
    """The number of bricks or models of a run that need no more work, and of all of them."""

    done: int
    total: int


NONE_DONE = Done(0, 0)


def named_counts(bricks: Done, models: Done) -> list[str]:
    """Return what a run counts: bricks, and models that it times end to end, as far as it has any."""
    counts = ((bricks, "brick"), (models, "model"))
    return [f"{each.done:,} of {counted(each.total, noun)}" for each, noun in counts if each.total]


def how_far(
    bricks: Done, models: Done, failed: int = 0, seconds_left: float | None = None, at_limits: int = 0
) -> list[Phrase]:
    """Return the progress of a run, the most important first, without counts of zero and unknown times."""
    found = [Phrase(told) for told in named_counts(bricks, models)]
    found += [Phrase(f"{failed:,} failed", Tone.FAILURE)] if failed else []
    found += [Phrase(f"{at_limits:,} noisy")] if at_limits else []
    found += [Phrase(f"{duration(seconds_left)} left")] if seconds_left else []
    return found
