"""The page of the fifty models of Table 1 beside the paper, from the manifest of the sample models."""

from pathlib import Path

from dlbricks_tui.models.library import Library, ModelSource
from docs.generators.markdown import MARK, table

SAMPLES = Path(__file__).parents[2] / "sample_models"
# Figures of the paper's Table 1, and unique layers in its authors' files, both by the number of the model.
PAPER_LAYERS = (
    142, 40, 40, 53, 40, 147, 147, 147, 311, 153, 347, 344, 517, 177, 874, 69, 40, 46, 176, 232, 177, 109, 58, 62,
    62, 94, 94, 94, 94, 96, 94, 96, 94, 94, 94, 56, 56, 40, 145, 157, 106, 967, 967, 501, 501, 501, 1029, 141,
    141, 53,
)  # fmt: skip
PUBLISHED_UNIQUE = (
    58, 26, 26, 40, 26, 112, 112, 112, 100, 70, 48, 56, 48, 48, 82, 41, 26, 26, 51, 109, 49, 40, 29, 44, 43, 21,
    21, 21, 21, 23, 21, 23, 21, 21, 21, 50, 50, 5, 123, 135, 73, 112, 112, 90, 90, 90, 40, 45, 45, 43,
)  # fmt: skip
PUBLISHED_IN_ALL = 1485
HEAD = f"""{MARK}# The fifty models of Table 1, beside the paper

The DLBricks paper ([arXiv:1911.07967](https://arxiv.org/abs/1911.07967)) evaluates these models. They are sample models:
`table1:1` to `table1:50`, or `table1` for all. `dlbricks corpus table1` prints the numbers of this page, with `--level
fused` those of the last section.

## Section 2.2 of the paper

| statement | paper | here |
|---|---|---|
| layers of the fifty models | 10,815 | 10,815 |
| unique layers among them | 1,529 | 1,494 |
| ... in percent | 14.1 % | 13.8 % |
| unique layers of the least unique model, 47 | 3.9 % | 3.9 % |

Of the 10,815 layers, 9,242 occur more than once in their own model: elementwise functions (33.3 %), then convolutions
(24.8 %), batch normalizations (22.5 %) and combinations of several tensors (7.4 %).

These models consist of the same unique layers: 2 and 3; 11 and 13; 17 and 18; 26 to 29, 31 and 33 to 35; 30 and 32; 36
and 37; 42 and 43; 44 to 46. All but 11 and 13, and 17 and 18, are one network in one file.

## Row by row

*Published* counts layers in the authors' measurement files, by kind, parameters and input shape; *here* bricks at G = 1,
`written`. Every layer has its published name, kind and output shape.

"""
TAIL = """
## Differences in unique layers

The paper does not define when two layers are the same. The published files give 1,485 to 1,536 unique layers, depending
on the definition. Here it is the [identity of bricks](../how-it-works/identity.md).

| | unique layers |
|---|---|
| published, by kind, parameters and input shape | 1,485 |
| a sum of two tensors has two spellings in the published files | - 4 |
| convolutions that occur with and without a bias, which the published files do not tell apart | + 11 |
| CapsNet: a reshape and a product that read other tensors inside the routing loop than after it | + 2 |
| here | 1,494 |

## How layers are counted

The paper counts layers of the Wolfram Language. Several MXNet operators that form one are a [composite
layer](model-files.md#composite-layers) with the paper's name, such as the scaling `-1 + 2x`.

- **CapsNet's routing loop** (4) stands twice in the file, with `__times__` 2 on each of its 15 layers, and
  the model's latency includes it twice. At `fused` the loop is unrolled.
- **Constants**: one layer of row 4 and three of row 41 are stored arrays, which take no time. In ONNX files they are
  weights: these have 10,811 layers, of which 1,491 are unique (row 4 has 41, row 41 has 71).
- **Definitions** are public ones, as `sample_models/builders/` says. ColorNet (24, 25) and the volumetric regression
  network (47) have none: published names, order and shapes decide their connections.
- MXNet pads both sides alike in the strided convolutions of MobileNet V2 (10), TensorFlow one.
- The measurement files spell rows 12 and 47 in another way (YFCC100m, Regression).

## Fused, as MXNet runs them today

MXNet 1.5, which the paper used, runs layers one by one. MXNet 1.9.1 first merges convolutions with later layers:

| level | layers | unique | share |
|---|---|---|---|
| `written` | 10,815 | 1,494 | 13.8 % |
| `fused` | 6,512 | 1,259 | 19.3 % |

All fifty run end to end at both levels. The largest, row 50, takes 2.3 GB of memory.
"""
_UNIQUE_IN_ALL = 1494


def page() -> str:
    """Return the page; `tests/sample_models/test_table1_page.py` compares its sums with the models."""
    models = Library(SAMPLES, SAMPLES / "no-data").find("table1")
    rows = [_row(*it) for it in zip(models, PAPER_LAYERS, PUBLISHED_UNIQUE, strict=True)]
    layers = sum(model.layers or 0 for model in models)
    names = ("id", "model", "file", "layers, paper", "layers, here", "unique, published", "unique, here", "share")
    in_all = (sum(PAPER_LAYERS), layers, PUBLISHED_IN_ALL, _UNIQUE_IN_ALL)
    total = ("", "all together", "", *(f"{it:,}" for it in in_all), _share(_UNIQUE_IN_ALL, layers))
    return f"{HEAD}{table(names, (*rows, total))}{TAIL}"


def _row(model: ModelSource, paper: int, published: int) -> tuple[str, ...]:
    layers, unique = model.layers or 0, model.unique_layers or 0
    file = f"`{model.path.name.removesuffix('-symbol.json')}`"
    number = model.table1_id or ""
    return number, model.name, file, f"{paper:,}", f"{layers:,}", str(published), str(unique), _share(unique, layers)


def _share(unique: int, layers: int) -> str:
    return f"{100 * unique / layers:.1f} %"
