from dlbricks_tui import api

# Measure the bricks of a model that the store lacks, and print how far the run is.
run = api.measure(
    "alexnet",
    api.MeasureOptions(time_budget_seconds=60),
    progress=lambda it: print(it.done, "of", it.total, it.note or it.doing),
)
for model in run.models:
    print(f"{model.model}: {model.sequential_ms:.2f} ms, {model.coverage.missing} layers are missing")

# Estimate it again from stored results, for two workers.
estimate = api.estimate("alexnet", api.EstimateOptions(workers=2))
print(estimate.workers_ms, estimate.interval_ms, estimate.next_step)

# Measure and compare several batch sizes.
run = api.measure("squeezenet1.1", api.MeasureOptions(batch=(1, 4), time_budget_seconds=60))
best = max(run.models, key=lambda it: it.per_second or 0)
print("batch", best.batch, best.per_second, "images per second")

# How many requests per second keep 99 % of the latencies within 50 ms? A look-up; measure=True asks LoadGen as well.
load = api.scenario("alexnet", api.ScenarioOptions(kind=api.ScenarioKind.SERVER, bound_ms=50.0))
print(load.predicted.per_second if load.predicted else load.obstacle)

# Look at its layers, and at the slowest stored results.
graph = api.load("alexnet")
print(len(graph.layers), "layers")
with api.open_results() as results:
    for it in results.select("of=brick", order=("-ms",))[:5]:
        print(it.name, it.trimmed_mean_ms, len(results.samples_ms(it)), "samples")
