"""Language models are measured by their carriers, in rounds, and each brick goes to the store."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Kind, QueuedWork, Ticket, arrival
from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.carriers import PROTOCOL, LanguageVariant, carrier_jobs, keys_of
from dlbricks_tui.language.composing import StepTimes, step_times
from dlbricks_tui.language.decoder import Step, decoder
from dlbricks_tui.language.errors import LanguageError
from dlbricks_tui.language.messages import (
    LanguageMessage,
    LanguageRound,
    LanguageWaits,
    ModelBegins,
    ModelMeasured,
    ModelNotMeasured,
)
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.measure.carriers import groups
from dlbricks_tui.measure.events import Event, RoundDone
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, ResultSink, runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.provenance import keep_provenance, provenance
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, Statistics, new_uuid
