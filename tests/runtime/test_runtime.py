import sys
from dataclasses import replace

import pytest

from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.runtime import Runtime, Settings, settings_from

TWO_THREADS = Settings(2)


def runtime(
    name: str = "ours", python: str = sys.executable, python_version: str = "3.11.7", settings: Settings = TWO_THREADS
) -> Runtime:
    return Runtime(name, python, "mxnet", "1.9.1", python_version, settings)


def test_name_path_and_micro_version_of_python_do_not_change_a_runtime() -> None:
    assert runtime().identity == runtime(name="theirs", python="/elsewhere", python_version="3.11.9").identity


@pytest.mark.parametrize(
    "other",
    [
        Runtime("ours", sys.executable, "mxnet", "1.5.1", "3.11.7", TWO_THREADS),
        runtime(python_version="3.10.7"),
        runtime(settings=Settings()),
        runtime(settings=Settings(4)),
        runtime(settings=Settings(2, (("MXNET_SUBGRAPH_BACKEND", "NONE"),))),
    ],
)
def test_settings_that_affect_results_change_a_runtime(other: Runtime) -> None:
    assert runtime().identity != other.identity


@pytest.mark.parametrize(
    ("framework", "processors", "threads"),
    [
        # MXNet takes two logical processors of x86 for one core.
        ("mxnet", Processors(8, "x86_64", hyper_threading=False), 4),
        ("mxnet", Processors(8, "aarch64", hyper_threading=True), 8),
        ("mxnet", Processors(1, "x86_64", hyper_threading=True), 1),
        # The others start one thread for each core.
        ("onnxruntime", Processors(8, "x86_64", hyper_threading=False), 8),
        ("onnxruntime", Processors(8, "x86_64", hyper_threading=True), 4),
        ("openvino", Processors(8, "aarch64", hyper_threading=True), 4),
        ("openvino", Processors(1, "x86_64", hyper_threading=True), 1),
    ],
)
def test_the_usual_number_of_threads_follows_from_the_processors(
    framework: str, processors: Processors, threads: int
) -> None:
    untuned = replace(runtime(settings=Settings()), framework=framework)
    assert untuned.on(processors) == untuned.with_threads(threads)
    assert runtime().on(processors) == runtime()


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MXNET_OMP_MAX_THREADS"])
def test_no_number_is_guessed_beside_another_setting_of_threads(variable: str) -> None:
    tuned = runtime(settings=Settings(None, ((variable, "4,2"),)))
    assert tuned.on(Processors(8, "x86_64", hyper_threading=False)) == tuned


def test_the_order_of_settings_does_not_matter() -> None:
    forth = runtime(settings=Settings(2, (("A", "1"), ("B", "2"))))
    back = runtime(settings=Settings(2, (("B", "2"), ("A", "1"))))
    assert forth.identity == back.identity


def test_a_worker_gets_the_settings_and_not_the_tuning_of_the_shell() -> None:
    shell = {
        "HOME": "/home/me",
        "OMP_NUM_THREADS": "64",
        "NNVM_EXEC_NUM_TEMP": "4",
        "MXNET_EXEC_BULK_EXEC_INFERENCE": "0",
    }
    settings = Settings(2, (("MXNET_SUBGRAPH_BACKEND", "NONE"),))
    environment = runtime(settings=settings).environment(shell)
    ours = {"OMP_NUM_THREADS": "2", "DLBRICKS_PRECISION": "f32", "MXNET_SUBGRAPH_BACKEND": "NONE"}
    assert environment == {"HOME": "/home/me", **ours}


@pytest.mark.parametrize(
    ("framework", "variables"),
    [
        ("mxnet", {"MXNET_CPU_WORKER_NTHREADS": "3", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"}),
        ("onnxruntime", {"ORT_INTER_OP_THREADS": "3"}),
    ],
)
def test_variables_for_parallel_operators_are_part_of_the_runtime(framework: str, variables: dict[str, str]) -> None:
    one = replace(runtime(settings=Settings(1, (("MXNET_A", "1"),))), framework=framework)
    several = one.side_by_side(3)
    assert (one.at_once, several.at_once) == (1, 3)
    assert dict(several.settings.environment) == {"MXNET_A": "1"} | variables
    assert several.identity != one.identity


@pytest.mark.parametrize(
    "variables",
    [
        {"MXNET_CPU_WORKER_NTHREADS": "4"},
        {"MXNET_CPU_WORKER_NTHREADS": "4", "MXNET_EXEC_BULK_EXEC_INFERENCE": "1"},
        {"MXNET_CPU_WORKER_NTHREADS": "1", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"MXNET_CPU_WORKER_NTHREADS": "many", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"MXNET_EXEC_BULK_EXEC_INFERENCE": "0"},
        {"ORT_INTER_OP_THREADS": "2"},
    ],
)
def test_operators_that_mxnet_groups_run_one_at_a_time(variables: dict[str, str]) -> None:
    assert runtime(settings=Settings(1, tuple(variables.items()))).at_once == 1


def test_another_interpreter_does_not_import_our_modules() -> None:
    shell = {"PYTHONPATH": "/ours", "PYTHONHOME": "/ours"}
    ours = {"OMP_NUM_THREADS": "2", "DLBRICKS_PRECISION": "f32"}
    assert runtime(python="/another/python").environment(shell) == ours
    assert runtime().environment(shell) == {**shell, **ours}


def test_tuning_variables_of_the_shell_become_settings() -> None:
    shell = {"HOME": "/home/me", "OMP_NUM_THREADS": "4", "MXNET_B": "2", "MXNET_A": "1"}
    assert settings_from(shell) == Settings(4, (("MXNET_A", "1"), ("MXNET_B", "2")))
    assert settings_from({}) == Settings()


def test_an_invalid_number_of_threads_is_passed_on() -> None:
    assert settings_from({"OMP_NUM_THREADS": "4,2"}) == Settings(None, (("OMP_NUM_THREADS", "4,2"),))
