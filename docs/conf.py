"""The site, by Sphinx: `pip install '.[docs]' && sphinx-build -W --keep-going -j 2 docs build/site`.

Pages are plain Markdown, whose code blocks run as tests. Its extensions are modules of this folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Tapeless"
author = "The authors of Tapeless"
extensions = [
    "myst_parser",
    "site_navigation",
    "notebook_pages",
    "reference_pages",
    "site_links",
    "site_blocks",
    "formulas",
]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # notebook_pages.py makes Markdown of notebooks
exclude_patterns = ["build"]
nitpicky = False  # types in signatures are words, not links

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
add_module_names = False
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python", "myst.header"]  # a type that two namespaces have; a page may begin at any level

html_theme = "furo"
html_title = "Tapeless"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"
pygments_style, pygments_dark_style = "friendly", "monokai"
