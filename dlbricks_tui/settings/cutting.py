"""The settings of how a model is cut into bricks, and how their latencies are composed."""

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.setting import Setting, one_of, whole

MOST_LAYERS = 999
# More sequences at once than any model has.
MOST_WORKERS = 64

GRANULARITY = Setting(
    name="granularity",
    kind=whole(1, MOST_LAYERS, 1, 2, 3, 4, 6, 8, 10, sign="G"),
    about="the largest number of layers in a sequence",
    meaning="the most layers of a brick",
    default=1,
    usual="1",
    letter="g",
    config="cutting.granularity",
)
LEVEL = Setting(
    name="level",
    kind=one_of(*Level),
    about="layers as the model has them, or as the runtime fuses them",
    meaning="fused layers, or those of the file",
    default=Level.FUSED,
    usual="fused",
)
CUT = Setting(
    name="cut",
    kind=one_of(*Cut),
    about="the windows of layers that are sequences",
    meaning="windows of layers that are bricks",
    default=Cut.CHAIN,
    usual="chain",
    config="cutting.cut",
)
ORDER = Setting(
    name="order",
    kind=one_of(*LayerOrder),
    about="the order in which layers are cut",
    meaning="in which layers are cut",
    default=LayerOrder.BRANCH,
    usual="branch",
    config="cutting.order",
)
WORKERS = Setting(
    name="workers",
    kind=whole(1, MOST_WORKERS, 1, 2, 4, 8, 16, sign="K"),
    about="compose for so many workers, too",
    meaning="of the parallel composition",
    config="estimate.workers",
)
CUTTING = (GRANULARITY, CUT, ORDER)
