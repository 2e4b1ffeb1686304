"""Settings of the documentation site; ``scripts/build_docs`` builds it, without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import labeler  # noqa: E402
import site_pages  # noqa: E402

project = "labeler"
version = release = labeler.__version__
copyright = "the authors of labeler"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

smartquotes = False  # two hyphens begin an option, and quotes may belong to a shell

html_theme = "furo"
html_title = f"labeler {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"footer_icons": []}

myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # parts of generated pages begin with a second level

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Undefined when", "notes_style"), ("Source", "notes_style")]


class Generated(SphinxDirective):
    """A part of a page that is made of the code: ``{generated} NAME ARGUMENT…``."""

    required_arguments = 1
    optional_arguments = 9
    option_spec: ClassVar[dict[str, object]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the part's nodes; its headings enter the page's table of contents."""
        name, *rest = self.arguments
        text = site_pages.PARTS[name](*rest)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive of generated parts."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
