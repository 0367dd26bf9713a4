"""A client follows: each printed line leaves at once. Then it is as if this had never been."""
import sys

if sys.stdout is not None:
    sys.stdout.reconfigure(line_buffering=True)
sys.path.remove("/sandbox/runtime/followed")
del sys.modules[__name__]
# The module that this one stands in place of; without one the error is what start-up expects.
import sitecustomize
