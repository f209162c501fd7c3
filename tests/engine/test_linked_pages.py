"""A link names the file that it leads to, and that is another name of the page, in whichever order both are added."""

from pathlib import Path

import pytest

from waylore import Waylore

PAGES = {
    "orders.md": "# Orders\n\n## Depends on\n\n- [the gateway](payment-gateway.md)\n",
    "payment-gateway.md": "# Granite\n\nGranite takes the money. It was built by Mara Lindqvist.\n",
    "teams/night-watch/README.md": "# Owls\n\nOwls are led by Kofi Mensah.\n",
    "alerts.md": "# Alerts\n\n## Received by\n\n- [the watch](teams/night-watch/)\n",
}


@pytest.mark.parametrize("order", [list(PAGES), [*reversed(PAGES)]], ids=["links first", "targets first"])
def test_link_names_the_file_that_is_another_name_of_its_page(order: list[str], tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        for name in order:
            path = tmp_path / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PAGES[name], encoding="utf-8")
            memory.add_files([path], root=tmp_path / "files")
        assert {(f.predicate, f.object) for f in memory.facts("Orders")} == {("Depends on", "payment gateway")}
        assert {(f.predicate, f.object) for f in memory.facts("Alerts")} == {("Received by", "night watch")}
        assert "Mara Lindqvist" in {f.object for f in memory.facts("payment gateway")}
        assert "Kofi Mensah" in {f.object for f in memory.facts("night watch")}
