from dlbricks_tui.evaluations.baseline import facts_of_host, tuning_variables
from tests.store.samples import provenance, system


def test_facts_that_a_host_does_not_tell_are_left_out() -> None:
    here = system(instance_type="", facts=(("governor", "unknown"), ("turbo", None), ("hyper_threading", False)))
    assert dict(facts_of_host(here, None)) == {
        "cpu": "Xeon 8124M",
        "cores": 4,
        "memory_gib": 8,
        "hyper_threading": False,
    }


def test_facts_are_those_of_the_time_of_the_result() -> None:
    here = system(facts=(("governor", "powersave"), ("turbo", True)))
    found = dict(facts_of_host(here, provenance(host=(("governor", "performance"), ("microcode", "unknown")))))
    assert (found["governor"], found["turbo"]) == ("performance", True)
    assert "microcode" not in found


def test_limits_on_kernels_are_parts_of_the_variant_and_no_variables() -> None:
    limited = {"DNNL_MAX_CPU_ISA": "AVX2", "OMP_DYNAMIC": "false"}
    assert tuning_variables(limited) == {"OMP_DYNAMIC": "false"}
