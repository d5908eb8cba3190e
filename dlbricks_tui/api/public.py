"""The public Python API: load a model, estimate it from stored results, measure it, and read the results.

    from dlbricks_tui import api

    run = api.measure("squeezenet1.1")
    print(run.models[0].sequential_ms)

The names in `__all__` are stable. All other modules may change from one version to the next.
"""

from dlbricks_tui.api.checks import CheckedModel, CheckOptions
from dlbricks_tui.api.combinations import CompareOptions
from dlbricks_tui.api.estimates import (
    BrickShare,
    ComparedCombination,
    Comparison,
    ModelEstimate,
    RegionShare,
    Remaining,
    TypeShare,
)
from dlbricks_tui.api.evaluating import (
    ComparedResult,
    EvaluatedLoad,
    EvaluatedResult,
    EvaluateOptions,
    EvaluationResult,
)
from dlbricks_tui.api.fleets import FleetEstimate, FleetHost, FleetModel, FleetOptions, FleetResult, LeftOutModel
from dlbricks_tui.api.language_answers import (
    DelayOfPrompt,
    LanguageAnswer,
    LanguageChange,
    LanguageIntervals,
    LanguageOptions,
    LanguageWhatIf,
    PartTime,
    SpeedAtContext,
)
from dlbricks_tui.api.loads import MeasuredScenario, PredictedScenario, ScenarioResult
from dlbricks_tui.api.measuring import Counts, MeasureOptions, ProbeOptions, ProbeResult, RunResult
from dlbricks_tui.api.questions import (
    Progress,
    check,
    compare,
    estimate,
    evaluate,
    evaluation_of,
    fleet,
    fleet_status,
    language,
    load,
    measure,
    probe,
    scenario,
    trace,
)
from dlbricks_tui.api.scenarios import ScenarioOptions
from dlbricks_tui.api.scope import EstimateOptions
from dlbricks_tui.api.session import Model as Model
from dlbricks_tui.api.session import Session
from dlbricks_tui.api.traces import TraceFormat, TraceOptions, TraceResult
from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import ByOthers, Coverage
from dlbricks_tui.estimate.explanation import Residual
from dlbricks_tui.evaluations.baseline import Difference
from dlbricks_tui.evaluations.evaluation import Evaluation, EvaluationError
from dlbricks_tui.evaluations.matching import Match
from dlbricks_tui.fleet.request import FleetError
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.language.architecture import LanguageError, LanguagePhase, WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed
from dlbricks_tui.language.orders import MeasuredEngine
from dlbricks_tui.measure.events import MeasureError
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Layer, LayerGraph, Level
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.settings.measuring import Question as FleetQuestion
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase, open_results
from dlbricks_tui.store.documents import StoreError
from dlbricks_tui.store.records import RuntimeRecord as Runtime
from dlbricks_tui.store.records import System
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.traces.trace import TraceError, TraceLevel

__all__ = [
    "BrickShare",
    "ByOthers",
    "CheckOptions",
    "CheckedModel",
    "CompareOptions",
    "ComparedCombination",
    "ComparedResult",
    "Comparison",
    "Counts",
    "Coverage",
    "Cut",
    "DelayOfPrompt",
    "Difference",
    "EstimateError",
    "EstimateOptions",
    "EvaluateOptions",
    "EvaluatedLoad",
    "EvaluatedResult",
    "Evaluation",
    "EvaluationError",
    "EvaluationResult",
    "FleetError",
    "FleetEstimate",
    "FleetHost",
    "FleetModel",
    "FleetOptions",
    "FleetQuestion",
    "FleetResult",
    "InstructionSet",
    "JobError",
    "LanguageAnswer",
    "LanguageChange",
    "LanguageError",
    "LanguageIntervals",
    "LanguageOptions",
    "LanguagePhase",
    "LanguageWhatIf",
    "Layer",
    "LayerGraph",
    "LayerOrder",
    "LeftOutModel",
    "Level",
    "Match",
    "MeasureError",
    "MeasureOptions",
    "MeasuredEngine",
    "MeasuredScenario",
    "MemoryNeed",
    "Method",
    "ModelError",
    "ModelEstimate",
    "Optimisation",
    "PartTime",
    "Precision",
    "PredictedScenario",
    "ProbeOptions",
    "ProbeResult",
    "Progress",
    "RegionShare",
    "Remaining",
    "Residual",
    "ResultsDatabase",
    "RunResult",
    "Runtime",
    "ScenarioError",
    "ScenarioKind",
    "ScenarioOptions",
    "ScenarioResult",
    "Selection",
    "Session",
    "SpeedAtContext",
    "State",
    "StoreError",
    "Summary",
    "System",
    "TraceError",
    "TraceFormat",
    "TraceLevel",
    "TraceOptions",
    "TraceResult",
    "TypeShare",
    "UserError",
    "Verdict",
    "WeightPrecision",
    "WorkerError",
    "check",
    "compare",
    "estimate",
    "evaluate",
    "evaluation_of",
    "fleet",
    "fleet_status",
    "language",
    "load",
    "measure",
    "open_results",
    "probe",
    "scenario",
    "trace",
]
