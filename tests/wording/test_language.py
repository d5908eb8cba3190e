from dlbricks_tui.wording.numbers import between, delay_text, memory_text, parameters_text, parameters_words, rate_text


def test_figures_have_as_many_digits_as_a_user_needs() -> None:
    assert [rate_text(it) for it in (1240.4, 151.2, 41.34, 7.08, 0.431)] == ["1,240", "151", "41.3", "7.1", "0.43"]
    assert rate_text(0.0123) == "0.012"
    delays = (0.123, 8.34, 412.3, 4213.0, 104_100.0, 354_000.0, 9e6)
    assert [delay_text(it) for it in delays] == ["0.12 ms", "8.3 ms", "412 ms", "4.2 s", "104 s", "5.9 min", "2.5 h"]
    sizes = (0.0004, 0.0841, 0.421, 5.12, 23.4, 1405)
    shown = ["0.4 MB", "84 MB", "0.42 GB", "5.1 GB", "23 GB", "1,405 GB"]
    assert [memory_text(int(it * 1e9)) for it in sizes] == shown
    parameters = (134_515_008, 999_885_952, 8_030_261_248, 13_015_864_320, 405_853_388_800)
    assert [parameters_text(it) for it in parameters] == ["135 M", "1.00 B", "8.03 B", "13.0 B", "406 B"]


def test_an_interval_has_its_unit_once() -> None:
    assert between(3700.0, 4100.0, delay_text) == "3.7 to 4.1 s"
    assert between(870.0, 1200.0, delay_text) == "870 ms to 1.2 s"
    assert between(6.5, 7.7, rate_text) == "6.5 to 7.7"


def test_parameters_of_a_mixture_are_those_of_all_experts_and_of_a_token() -> None:
    assert parameters_words(8_030_261_248, 8_030_261_248) == "8.03 billion parameters"
    assert parameters_words(30_532_122_624, 3_353_548_800) == "30.5 billion parameters, 3.35 billion for a token"
    assert parameters_words(1_300_000_000, 399_000_000) == "1.30 billion parameters, 399 million for a token"
