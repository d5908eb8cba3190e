from docs.keys import PAGE, page


def test_the_page_of_keys_is_that_of_the_registry() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m docs.keys writes it anew"
