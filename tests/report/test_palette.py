import re

from dlbricks_tui.report.palette import SERIES_INKS, Ink, for_pages, series_style, style_sheet


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_and_marks_stand_out_on_light_and_on_dark_paper() -> None:
    for ink in (Ink.TEXT, Ink.MUTED):
        assert contrast(ink.light, Ink.PAPER.light) >= 4.5
        assert contrast(ink.dark, Ink.PAPER.dark) >= 4.5
    for ink in (*SERIES_INKS, Ink.STONE):
        assert contrast(ink.light, Ink.PAPER.light) >= 2.9
        assert contrast(ink.dark, Ink.PAPER.dark) >= 2.9


def test_every_colour_is_found_again_in_a_drawing() -> None:
    assert len({ink.light for ink in Ink}) == len({ink.css_name for ink in Ink}) == len(Ink)
    drawn = f'<svg width="504pt" height="100pt" viewBox="0 0 504 100"><path style="fill: {Ink.BLUE.light}"/></svg>'
    shown = for_pages(drawn)
    assert 'style="fill: var(--blue)"' in shown
    assert "height=" not in shown
    assert 'style="max-width: 504pt; min-width: 312pt"' in shown


def test_both_papers_have_all_colours() -> None:
    for dark in (False, True):
        assert set(re.findall(r"--([\w-]+): #", style_sheet(dark))) == {ink.css_name for ink in Ink}


def test_series_are_told_apart_without_colours_too() -> None:
    styles = [series_style(number) for number in range(12)]
    assert len(set(styles)) == 12
    assert len({mark for _, mark in styles[:6]}) == 6
