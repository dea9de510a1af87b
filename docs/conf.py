"""Settings of the documentation; `make docs` builds it without a network, any warning fails."""

from devicecore import __version__

project = "devicecore"
author = "the devicecore authors"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"devicecore {__version__}"
html_show_copyright = False

default_role = "any"  # `Device.compute` in a docstring is a link, and a dead one is a warning
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Types in signatures: those of other projects would need their inventories from the network, and
# what is imported for the type checker only, or is an alias, shows by its bare name.
nitpick_ignore_regex = [
    (r"py:class", r"(attr|collections|concurrent|numpy|onnxruntime|os|pathlib|torch|types)\..*"),
    (r"py:class", r"\w+"),
]
