"""A plug-in whose driver's package is not installed."""

import no_such_driver_package

BrokenFactory = no_such_driver_package.Factory
