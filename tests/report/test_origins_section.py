from typing import Any

from dlbricks_tui.report.measured import origins_section
from tests.store.samples import provenance


def rows(*origins: Any) -> list[dict[str, Any]]:
    (section,) = origins_section(origins)
    table = section.exhibits[0].numbers
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_results_without_provenance_get_no_section() -> None:
    assert list(origins_section(())) == []


def test_equal_versions_on_equal_hosts_are_one_row() -> None:
    later = "2026-11-22T08:00:00+00:00"
    (row,) = rows(provenance(), provenance(run="r2", when=later), provenance(run="r2"))
    assert (row["runs"], row["last_run"], row["framework"]) == (2, later, "MXNet 1.9.1")
    assert (row["onednn"], row["kernel"], row["turbo"]) == ("2.4.0", "6.1.0-13-cloud-amd64", "yes")
    assert (row["numpy"], row["microcode"]) == (None, None)


def test_another_kernel_or_version_is_another_row() -> None:
    found = rows(provenance(), provenance(host=(("kernel", "6.9"),)), provenance(packages=(("onnxruntime", "1.32.0"),)))
    assert sorted((str(it["framework"]), str(it["kernel"])) for it in found) == [
        ("MXNet 1.9.1", "6.1.0-13-cloud-amd64"),
        ("MXNet 1.9.1", "6.9"),
        ("ONNX Runtime 1.32.0", "6.1.0-13-cloud-amd64"),
    ]
