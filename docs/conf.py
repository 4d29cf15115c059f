import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for mathml, which lies beside this file

project = "gumbelrace"
author = project_copyright = "The gumbelrace contributors"
release = version = installed_version("gumbelrace")

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "attrs_block", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = False
# Attributes as fields of their class: documented members are then not described twice.
napoleon_use_ivar = True
napoleon_use_rtype = True  # else autodoc adds it once more

html_theme = "furo"
pygments_style, pygments_dark_style = "friendly", "github-dark"
html_title = "gumbelrace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#85bfe8", "color-brand-content": "#85bfe8"},
}


def one_entry_each(app, what, name, obj, options, lines):
    """Repeat a description that attributes share: Sphinx takes `low` in `low, high : float` for a type."""
    for section in [n for n, line in enumerate(lines) if line == "Attributes"]:
        n = section + 2
        while n < len(lines) and not (lines[n] and lines[n + 1 : n + 2] and lines[n + 1].startswith("---")):
            if shared := re.fullmatch(r"(\w+(?:, \w+)+)( : .*)?", lines[n]):
                text = lines[n + 1 : end_of(lines, n + 1)]
                entries = [[one + (shared[2] or ""), *text] for one in shared[1].split(", ")]
                lines[n : n + 1 + len(text)] = [line for entry in entries for line in entry]
            n = end_of(lines, n + 1)


def end_of(lines, n):
    """Give the first line from n on that is neither indented nor empty."""
    return next((k for k in range(n, len(lines)) if lines[k][:1].strip()), len(lines))


def setup(app):
    app.connect("autodoc-process-docstring", one_entry_each, priority=400)  # before napoleon
