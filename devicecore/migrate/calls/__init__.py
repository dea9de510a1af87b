"""How one call runs on a device: arguments in, result out, faults, report."""
