"""placeholder"""


def memory_need(model, precision, context, prompt):
    return (model.parameters // 2, 2 * model.blocks * model.kv_heads * context * model.head_size * 4, 0)
