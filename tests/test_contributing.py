"""The worked examples for contributors run, and are short."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"
SECTIONS = {
    title: re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    for title, text in re.findall(r"^## (Add a \w+)\n(.*?)(?=^## )", PAGE.read_text("utf-8"), re.M | re.S)
}


def test_bounds_methods_kernels_and_models_are_added_as_the_page_says():
    """One namespace for the whole page: it assumes what stands above."""
    assert list(SECTIONS) == ["Add a bound", "Add a method", "Add a kernel", "Add a model"]
    names = {"__name__": "contributing"}
    for blocks in SECTIONS.values():
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)


def test_each_takes_less_than_forty_lines():
    for title, blocks in SECTIONS.items():
        assert sum(1 for block in blocks for line in block.splitlines() if line) < 40, title
