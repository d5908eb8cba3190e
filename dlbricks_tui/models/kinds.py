"""The kinds of layers, by which layers are sorted and coloured."""

from collections.abc import Iterable
from enum import Enum


class Kind(str, Enum):
    """The closed list of kinds (documented in docs/reference/operators.md)."""

    CONVOLUTION = "convolution"
    DECONVOLUTION = "deconvolution"
    LINEAR = "linear"
    BATCHNORM = "batchnorm"
    NORM = "norm"
    LRN = "lrn"
    POOLING = "pooling"
    ELEMENTWISE = "elementwise"
    COMBINE = "combine"
    CONCAT = "concat"
    PAD = "pad"
    REDUCE = "reduce"
    BROADCAST = "broadcast"
    RESIZE = "resize"
    SLICE = "slice"
    FLATTEN = "flatten"
    RESHAPE = "reshape"
    TRANSPOSE = "transpose"
    SOFTMAX = "softmax"
    DROPOUT = "dropout"
    RECURRENT = "recurrent"
    ATTENTION = "attention"
    EMBEDDING = "embedding"
    QUANTIZE = "quantize"
    LOSS = "loss"
    CONSTANT = "constant"
    OTHER = "other"
    # The last one: a saved index of results knows kinds by their place.
    TREES = "trees"


_KINDS: dict[Kind, str] = {
    Kind.CONVOLUTION: "conv Convolution Convolution_v1 _contrib_DeformableConvolution "
    "_contrib_ModulatedDeformableConvolution _contrib_quantized_conv",
    Kind.DECONVOLUTION: "conv_transpose Deconvolution",
    Kind.LINEAR: "linear FullyConnected dot batch_dot _contrib_quantized_fully_connected _linalg_gemm _linalg_gemm2",
    Kind.BATCHNORM: "batch_norm BatchNorm BatchNorm_v1 _contrib_SyncBatchNorm _contrib_quantized_batch_norm "
    "_contrib_BatchNormWithReLU",
    Kind.NORM: "instance_norm InstanceNorm LayerNorm GroupNorm L2Normalization norm",
    Kind.LRN: "lrn LRN",
    Kind.POOLING: "max_pool mean_pool global_max_pool global_mean_pool Pooling Pooling_v1 _contrib_quantized_pooling "
    "_contrib_AdaptiveAvgPooling2D ROIPooling _contrib_ROIAlign _contrib_RROIAlign _contrib_PSROIPooling "
    "_contrib_DeformablePSROIPooling",
    Kind.ELEMENTWISE: "relu sigmoid tanh softplus softsign leaky_relu elu prelu selu gelu LeakyReLU Activation "
    "hard_sigmoid clip identity _copy _copyto BlockGrad exp log sqrt square abs negative reciprocal rsqrt cbrt rcbrt "
    "erf erfinv gamma gammaln sign floor ceil round rint fix trunc log2 log10 log1p expm1 degrees radians "
    "sin cos tan sinh cosh arcsin arccos arctan arcsinh arccosh arctanh logical_not smooth_l1 zeros_like ones_like "
    "Cast amp_cast amp_multicast _contrib_div_sqrt_dim _contrib_quantized_act SequenceMask "
    "_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _power_scalar _rpower_scalar "
    "_maximum_scalar _minimum_scalar _mod_scalar _rmod_scalar _hypot_scalar _equal_scalar _not_equal_scalar "
    "_greater_scalar _greater_equal_scalar _lesser_scalar _lesser_equal_scalar _logical_and_scalar "
    "_logical_or_scalar _logical_xor_scalar",
    Kind.COMBINE: "add sub mul div sum add_n elemwise_add elemwise_sub elemwise_mul elemwise_div _grad_add where "
    "_power _maximum _minimum _mod _hypot _equal _not_equal _greater _greater_equal _lesser _lesser_equal "
    "_logical_and _logical_or _logical_xor broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_power "
    "broadcast_maximum broadcast_minimum broadcast_mod broadcast_hypot broadcast_equal broadcast_not_equal "
    "broadcast_greater broadcast_greater_equal broadcast_lesser broadcast_lesser_equal broadcast_logical_and "
    "broadcast_logical_or broadcast_logical_xor _contrib_quantized_elemwise_add _contrib_quantized_elemwise_mul",
    Kind.CONCAT: "concat Concat stack _rnn_param_concat _contrib_quantized_concat",
    Kind.PAD: "pad Pad",
    # The neutral "sum" adds several inputs. MXNet's own "sum" adds the elements of one.
    Kind.REDUCE: "reduce_mean reduce_sum reduce_max mxnet.sum mean max min prod nansum nanprod moments argmax argmin "
    "argmax_channel",
    Kind.BROADCAST: "broadcast_to broadcast_axis broadcast_like repeat tile",
    Kind.RESIZE: "upsample_nearest UpSampling _contrib_BilinearResize2D",
    Kind.SLICE: "slice slice_axis slice_like SliceChannel _split_v2 Crop take batch_take gather_nd pick diag "
    "SequenceLast",
    Kind.FLATTEN: "flatten Flatten _contrib_quantized_flatten",
    Kind.RESHAPE: "reshape Reshape expand_dims squeeze reshape_like depth_to_space space_to_depth",
    Kind.TRANSPOSE: "transpose SwapAxis reverse SequenceReverse",
    Kind.SOFTMAX: "softmax log_softmax softmin SoftmaxActivation",
    Kind.DROPOUT: "dropout Dropout",
    Kind.RECURRENT: "RNN _contrib_quantized_rnn _foreach _while_loop",
    Kind.ATTENTION: "_contrib_interleaved_matmul_selfatt_qk _contrib_interleaved_matmul_selfatt_valatt "
    "_contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_encdec_valatt _sg_mkldnn_selfatt_qk "
    "_sg_mkldnn_selfatt_valatt",
    Kind.EMBEDDING: "embedding Embedding one_hot _contrib_SparseEmbedding _contrib_quantized_embedding",
    Kind.QUANTIZE: "_contrib_quantize _contrib_quantize_v2 _contrib_dequantize _contrib_requantize",
    Kind.LOSS: "SoftmaxOutput MakeLoss make_loss LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput "
    "SVMOutput softmax_cross_entropy CTCLoss IdentityAttachKLSparseReg",
    Kind.CONSTANT: "_zeros _ones _full _arange _zeros_without_dtype _eye _linspace",
}

# Names of ONNX and ONNX Runtime only.
_ONNX_KINDS: dict[Kind, str] = {
    Kind.CONVOLUTION: "Conv FusedConv ConvInteger QLinearConv DeformConv NhwcConv NhwcFusedConv",
    Kind.DECONVOLUTION: "ConvTranspose QLinearConvTranspose",
    Kind.LINEAR: "Gemm MatMul FusedGemm FusedMatMul MatMulInteger QLinearMatMul QGemm MatMulIntegerToFloat "
    "DynamicQuantizeMatMul MatMulNBits MatMulBnb4 MatMulInteger16 MatMulFpQ4 FusedMatMulActivation TransposeMatMul "
    "GemmFastGelu GemmFloat8 SparseToDenseMatMul Einsum LinearClassifier LinearRegressor SVMClassifier SVMRegressor "
    "MoE QMoE",
    Kind.BATCHNORM: "BatchNormalization",
    Kind.NORM: "InstanceNormalization LayerNormalization GroupNormalization LpNormalization "
    "MeanVarianceNormalization RMSNormalization SkipLayerNormalization SimplifiedLayerNormalization "
    "SkipSimplifiedLayerNormalization EmbedLayerNormalization QEmbedLayerNormalization GroupNorm SkipGroupNorm "
    "Normalizer",
    Kind.POOLING: "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool MaxRoiPool RoiAlign "
    "MaxUnpool QLinearAveragePool QLinearGlobalAveragePool NhwcMaxPool MaxpoolWithMask",
    Kind.ELEMENTWISE: "Relu Sigmoid Tanh Softplus Softsign LeakyRelu Elu PRelu Selu Gelu FastGelu QuickGelu BiasGelu "
    "Celu Mish Swish HardSigmoid HardSwish ThresholdedRelu Shrink Clip Identity Exp Log Sqrt Abs Neg "
    "Reciprocal Erf Sign Floor Ceil Round Sin Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Not "
    "IsNaN IsInf CastLike BitwiseNot Trilu QLinearSigmoid QLinearLeakyRelu Scaler Imputer Binarizer",
    Kind.COMBINE: "Add Sub Mul Div Sum Mean Max Min Pow Mod Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor "
    "Where BitShift BitwiseAnd BitwiseOr BitwiseXor QLinearAdd QLinearMul QLinearWhere MulInteger BiasAdd ComplexMul "
    "ComplexMulConj",
    Kind.CONCAT: "QLinearConcat SequenceConstruct SequenceInsert ConcatFromSequence FeatureVectorizer",
    Kind.REDUCE: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
    "ReduceSumSquare ArgMax ArgMin CumSum CumProd QLinearReduceMean ReduceSumInteger",
    Kind.BROADCAST: "Expand Tile",
    Kind.RESIZE: "Resize Upsample GridSample CropAndResize",
    Kind.SLICE: "Slice Split Gather GatherElements GatherND Compress TopK NonZero NonMaxSuppression Unique "
    "ScatterElements ScatterND Scatter TensorScatter SplitToSequence SequenceAt SequenceErase ArrayFeatureExtractor "
    "CenterCropPad",
    Kind.RESHAPE: "Unsqueeze Squeeze DepthToSpace SpaceToDepth ZipMap CastMap",
    Kind.TRANSPOSE: "Transpose ReverseSequence ReorderInput ReorderOutput Reorder",
    Kind.SOFTMAX: "Softmax LogSoftmax Hardmax BiasSoftmax QLinearSoftmax",
    Kind.RECURRENT: "LSTM GRU Loop Scan DynamicQuantizeLSTM AttnLSTM",
    Kind.ATTENTION: "Attention MultiHeadAttention GroupQueryAttention QAttention RotaryEmbedding PackedAttention "
    "PackedMultiHeadAttention PagedAttention SparseAttention LongformerAttention DecoderAttention "
    "DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention QOrderedAttention LinearAttention",
    Kind.EMBEDDING: "OneHot LabelEncoder CategoryMapper OneHotEncoder DictVectorizer TorchEmbedding "
    "GatherBlockQuantized",
    Kind.QUANTIZE: "QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    Kind.LOSS: "SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss",
    Kind.CONSTANT: "Constant ConstantOfShape Range EyeLike Shape Size SequenceEmpty RandomNormal RandomNormalLike "
    "RandomUniform RandomUniformLike",
    Kind.TREES: "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
}

ONNX_KIND_OF_OP = {op: kind for kind, ops in _ONNX_KINDS.items() for op in ops.split()}
KIND_OF_OP = ONNX_KIND_OF_OP | {op: kind for kind, ops in _KINDS.items() for op in ops.split()}

# A layer of several operators gets the first of these kinds that occurs in it.
_BY_WEIGHT = (
    *(Kind.CONVOLUTION, Kind.DECONVOLUTION, Kind.RECURRENT, Kind.ATTENTION, Kind.TREES, Kind.LINEAR, Kind.POOLING),
    *(Kind.EMBEDDING, Kind.BATCHNORM, Kind.NORM, Kind.LRN, Kind.RESIZE, Kind.SOFTMAX, Kind.CONCAT, Kind.COMBINE),
    *(Kind.REDUCE, Kind.PAD, Kind.TRANSPOSE, Kind.BROADCAST, Kind.SLICE, Kind.ELEMENTWISE),
)


def kind_of(op: str) -> Kind:
    """Return the kind of an operator by its neutral name."""
    return KIND_OF_OP.get(op) or KIND_OF_OP.get(op.rpartition(".")[2], Kind.OTHER)


def heaviest(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of a layer of several operators."""
    present = tuple(kinds)
    return present[0] if len(present) == 1 else next((kind for kind in _BY_WEIGHT if kind in present), present[0])
