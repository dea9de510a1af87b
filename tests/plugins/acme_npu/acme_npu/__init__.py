"""The plug-in of a company that makes NPUs."""

__version__ = "1.0"
