"""Made-up answers about users of language models."""

from typing import Any

from dlbricks_tui.api.loads import TokenLoadAnswer, answered
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.composing import StepTime
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import DrivenLoad, LanguageQuestion
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.scenarios.tokens import StepLatencies, TokenQueue, TokenScenario, TokenServing
from tests.language.test_decoder import library

WHEN = "2026-11-28T20:46:00+00:00"


def token_load_answer(
    users: tuple[int, ...] = (2, 4), *, is_driven: bool = True, coverage: float = 1.0, **asked: Any
) -> TokenLoadAnswer:
    """Return an answer of a model that reads a prompt in half a second, and makes a token in 20 ms."""
    model = NamedModel("smollm2-135m", library("smollm2-135m"), title="SmolLM2 135M")
    runtime = Runtime("onnxruntime", "python", "onnxruntime", "1.32.0", "3.11", Settings(2))
    given = {"prompt": 512, "generate": 128, "first_token_ms": 4000.0, "per_token_ms": 60.0}
    scenario = TokenScenario(**{**given, "percentile": 90.0, "think_s": 0.0, "batch": 4, **asked})
    question = LanguageQuestion(model, runtime, WeightPrecision.INT4, scenario.prompt, scenario.generate, (1, 2, 4))
    engine = TokenQueue(scenario, StepLatencies(520.0, {1: 21.0, 2: 26.0, 4: 33.0}))

    def driven(serving: TokenServing, count: int) -> DrivenLoad | None:
        if serving is TokenServing.CONTINUOUS or not is_driven:
            return None
        return DrivenLoad(engine="onnxruntime-genai 0.18.0", load=engine.load(serving, count), when=WHEN)

    def step(ms: float) -> StepTime:
        return StepTime(ms, 0.1 * ms, {}, coverage, WHEN)

    steps = {1: step(20.0), 2: step(25.0), 4: step(32.0)}
    return answered(question, scenario, step(500.0), steps, users, driven, "quiet-host")
