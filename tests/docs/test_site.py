"""The site of the documentation: it builds, works from disk, and its search finds pages."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.config import load_config
from mkdocs.structure.files import get_files
from mkdocs.structure.nav import get_navigation
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
PAGES = sorted(it.relative_to(ROOT / "docs") for it in (ROOT / "docs").rglob("*.md"))
WIDTHS = (400, 800, 1600)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), *options]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder


def file_of(page: Path) -> Path:
    """Return the file of a page in the site."""
    return page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")


def test_every_page_has_its_place_in_the_menu() -> None:
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True)
    menu = get_navigation(get_files(config), config)
    assert sorted(Path(it.file.src_uri) for it in menu.pages) == PAGES


@pytest.mark.soak
def test_every_page_is_on_the_site_and_no_script_or_picture_comes_from_the_network(site: Path) -> None:
    for page in PAGES:
        html = (site / file_of(page)).read_text(encoding="utf-8")
        assert 'src="http' not in html and 'rel="stylesheet" href="http' not in html, page


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and chromedriver are not installed: sudo apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in ("--headless=new", "--no-sandbox", "--allow-file-access-from-files"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def opened(browser: webdriver.Chrome, page: Path, width: int) -> None:
    browser.set_window_size(width, 900)
    browser.get(page.as_uri())


@pytest.mark.soak
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_open_without_errors_and_fit_their_window(browser: webdriver.Chrome, site: Path, width: int) -> None:
    for page in PAGES:
        opened(browser, site / file_of(page), width)
        assert browser.execute(Command.GET_LOG, {"type": "browser"})["value"] == [], page
        spilt = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert spilt <= 0, page
        broken = browser.execute_script(
            "return [...document.images].filter(it => it.complete && !it.naturalWidth).map(it => it.src)"
        )
        assert broken == [], page


@pytest.mark.soak
def test_every_link_leads_to_a_file_and_a_heading(browser: webdriver.Chrome, site: Path) -> None:
    ids: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    for page in PAGES:
        file = site / file_of(page)
        opened(browser, file, WIDTHS[-1])
        ids[file] = set(browser.execute_script("return [...document.querySelectorAll('[id]')].map(it => it.id)"))
        found = browser.execute_script("return [...document.links].map(it => it.href)")
        links += [(file, it) for it in found if it.startswith("file:")]
    assert len(links) > len(PAGES)
    for file, link in links:
        parts = urlsplit(link)
        target = Path(unquote(parts.path))
        assert target.is_file(), (file, link)
        assert not parts.fragment or unquote(parts.fragment) in ids.get(target, ()), (file, link)


@pytest.mark.soak
def test_the_search_finds_a_word(browser: webdriver.Chrome, site: Path) -> None:
    opened(browser, site / "index.html", WIDTHS[-1])
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys("batch")

    def results(driver: WebDriver) -> list[str]:
        return [it.text for it in driver.find_elements(By.CSS_SELECTOR, ".md-search-result__item")]

    found = WebDriverWait(browser, 30).until(results)
    assert any("batch" in it.lower() for it in found)
