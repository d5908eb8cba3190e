"""The public Python API: load a model, estimate it from stored results, measure it, and read the results.

    from dlbricks_tui import api

    run = api.measure("squeezenet1.1")
    print(run.models[0].sequential_ms)

The names in `__all__` are stable. All other modules may change from one version to the next.
"""

import typing as _typing

from dlbricks_tui.api.checks import CheckedModel as CheckedModel
from dlbricks_tui.api.checks import CheckOptions as CheckOptions
from dlbricks_tui.api.combinations import CompareOptions as CompareOptions
from dlbricks_tui.api.estimates import BrickShare as BrickShare
from dlbricks_tui.api.estimates import ComparedCombination as ComparedCombination
from dlbricks_tui.api.estimates import Comparison as Comparison
from dlbricks_tui.api.estimates import ModelEstimate as ModelEstimate
from dlbricks_tui.api.estimates import RegionShare as RegionShare
from dlbricks_tui.api.estimates import Remaining as Remaining
from dlbricks_tui.api.estimates import TypeShare as TypeShare
from dlbricks_tui.api.evaluating import ComparedResult as ComparedResult
from dlbricks_tui.api.evaluating import EvaluatedLoad as EvaluatedLoad
from dlbricks_tui.api.evaluating import EvaluatedResult as EvaluatedResult
from dlbricks_tui.api.evaluating import EvaluateOptions as EvaluateOptions
from dlbricks_tui.api.evaluating import EvaluationResult as EvaluationResult
from dlbricks_tui.api.fleets import FleetEstimate as FleetEstimate
from dlbricks_tui.api.fleets import FleetHost as FleetHost
from dlbricks_tui.api.fleets import FleetModel as FleetModel
from dlbricks_tui.api.fleets import FleetOptions as FleetOptions
from dlbricks_tui.api.fleets import FleetResult as FleetResult
from dlbricks_tui.api.fleets import LeftOutModel as LeftOutModel
from dlbricks_tui.api.language_answers import DelayOfPrompt as DelayOfPrompt
from dlbricks_tui.api.language_answers import LanguageAnswer as LanguageAnswer
from dlbricks_tui.api.language_answers import LanguageChange as LanguageChange
from dlbricks_tui.api.language_answers import LanguageIntervals as LanguageIntervals
from dlbricks_tui.api.language_answers import LanguageOptions as LanguageOptions
from dlbricks_tui.api.language_answers import LanguageWhatIf as LanguageWhatIf
from dlbricks_tui.api.language_answers import PartTime as PartTime
from dlbricks_tui.api.language_answers import SpeedAtContext as SpeedAtContext
from dlbricks_tui.api.loads import MeasuredScenario as MeasuredScenario
from dlbricks_tui.api.loads import PredictedScenario as PredictedScenario
from dlbricks_tui.api.loads import ScenarioResult as ScenarioResult
from dlbricks_tui.api.measuring import Counts as Counts
from dlbricks_tui.api.measuring import MeasureOptions as MeasureOptions
from dlbricks_tui.api.measuring import ProbeOptions as ProbeOptions
from dlbricks_tui.api.measuring import ProbeResult as ProbeResult
from dlbricks_tui.api.measuring import RunResult as RunResult
from dlbricks_tui.api.questions import Progress as Progress
from dlbricks_tui.api.questions import check as check
from dlbricks_tui.api.questions import compare as compare
from dlbricks_tui.api.questions import estimate as estimate
from dlbricks_tui.api.questions import evaluate as evaluate
from dlbricks_tui.api.questions import evaluation_of as evaluation_of
from dlbricks_tui.api.questions import fleet as fleet
from dlbricks_tui.api.questions import fleet_status as fleet_status
from dlbricks_tui.api.questions import language as language
from dlbricks_tui.api.questions import load as load
from dlbricks_tui.api.questions import measure as measure
from dlbricks_tui.api.questions import probe as probe
from dlbricks_tui.api.questions import scenario as scenario
from dlbricks_tui.api.questions import trace as trace
from dlbricks_tui.api.scenarios import ScenarioOptions as ScenarioOptions
from dlbricks_tui.api.scope import EstimateOptions as EstimateOptions
from dlbricks_tui.api.session import Model as Model
from dlbricks_tui.api.session import Session as Session
from dlbricks_tui.api.traces import TraceFormat as TraceFormat
from dlbricks_tui.api.traces import TraceOptions as TraceOptions
from dlbricks_tui.api.traces import TraceResult as TraceResult
from dlbricks_tui.bricks.cutting import Cut as Cut
from dlbricks_tui.bricks.cutting import LayerOrder as LayerOrder
from dlbricks_tui.errors import UserError as UserError
from dlbricks_tui.estimate.compositions import EstimateError as EstimateError
from dlbricks_tui.estimate.estimate import ByOthers as ByOthers
from dlbricks_tui.estimate.estimate import Coverage as Coverage
from dlbricks_tui.estimate.explanation import Residual as Residual
from dlbricks_tui.evaluations.baseline import Difference as Difference
from dlbricks_tui.evaluations.evaluation import Evaluation as Evaluation
from dlbricks_tui.evaluations.evaluation import EvaluationError as EvaluationError
from dlbricks_tui.evaluations.matching import Match as Match
from dlbricks_tui.fleet.request import FleetError as FleetError
from dlbricks_tui.jobs.errors import JobError as JobError
from dlbricks_tui.jobs.folder import State as State
from dlbricks_tui.language.architecture import LanguageError as LanguageError
from dlbricks_tui.language.architecture import LanguagePhase as LanguagePhase
from dlbricks_tui.language.architecture import WeightPrecision as WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed as MemoryNeed
from dlbricks_tui.language.orders import MeasuredEngine as MeasuredEngine
from dlbricks_tui.measure.events import MeasureError as MeasureError
from dlbricks_tui.measure.method import Method as Method
from dlbricks_tui.models.errors import ModelError as ModelError
from dlbricks_tui.models.graph import Layer as Layer
from dlbricks_tui.models.graph import LayerGraph as LayerGraph
from dlbricks_tui.models.graph import Level as Level
from dlbricks_tui.runtime.errors import WorkerError as WorkerError
from dlbricks_tui.runtime.variant import InstructionSet as InstructionSet
from dlbricks_tui.runtime.variant import Optimisation as Optimisation
from dlbricks_tui.runtime.variant import Precision as Precision
from dlbricks_tui.scenarios.kinds import ScenarioKind as ScenarioKind
from dlbricks_tui.scenarios.scenario import ScenarioError as ScenarioError
from dlbricks_tui.settings.measuring import Question as _Question
from dlbricks_tui.store.change import Verdict as Verdict
from dlbricks_tui.store.columns import Summary as Summary
from dlbricks_tui.store.database import ResultsDatabase as ResultsDatabase
from dlbricks_tui.store.database import open_results as open_results
from dlbricks_tui.store.documents import StoreError as StoreError
from dlbricks_tui.store.records import RuntimeRecord as _RuntimeRecord
from dlbricks_tui.store.records import System as System
from dlbricks_tui.store.selections import Selection as Selection
from dlbricks_tui.traces.trace import TraceError as TraceError
from dlbricks_tui.traces.trace import TraceLevel as TraceLevel

FleetQuestion = _Question
Runtime = _RuntimeRecord

if not _typing.TYPE_CHECKING:
    # Type checkers take no computed list: `as` tells them what is exported. `Model` stands in annotations only.
    __all__ = [name for name in sorted(globals()) if not name.startswith("_") and name != "Model"]
