"""Calibration constants for systems that were never calibrated: the medians of what other systems have.

`python -m benchmarks.constants` fits them to the committed samples; docs/experiments.md has the figures of each host.
"""

from collections.abc import Mapping

from dlbricks_tui.estimate.calibration import UNCALIBRATED, Correction
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Traits

# Results of isolated bricks carry ids that begin so. Other methods need no constants.
_ISOLATED = "alone-"
# By these constants the committed networks are wrong by 7.5 % (root mean square).
_RESIDUALS = (0.075,)
_PRIORS: Mapping[str, Correction] = {
    MXNET.framework: Correction(
        (("call_ms", 0.08), ("warm_brick_ms", 0.016), ("cold_brick_ms", -0.036)), _RESIDUALS, is_prior=True
    ),
    ONNX_RUNTIME.framework: Correction((("warm_brick_ms", 0.040),), _RESIDUALS, is_prior=True),
}


def prior_of(traits: Traits, protocol: str) -> Correction:
    """Return the prior for results of a method by a framework; nothing is corrected where there is none."""
    return _PRIORS.get(traits.framework, UNCALIBRATED) if protocol.startswith(_ISOLATED) else UNCALIBRATED
