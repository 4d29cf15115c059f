from importlib.metadata import version as installed_version

project = "gumbelrace"
author = project_copyright = "The gumbelrace contributors"
release = version = installed_version("gumbelrace")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = False
# Attributes as fields of their class: documented members are then not described twice.
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "alabaster"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_theme_options = {
    "description": "Discrete sampling that reads a fraction of the factors",
    "page_width": "1080px",
    "sidebar_width": "220px",
}
