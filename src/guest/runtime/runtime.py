"""What programs in a sandbox are given: `from runtime import blobs, log`."""
from . import blobs, log

__all__ = ["blobs", "log"]
