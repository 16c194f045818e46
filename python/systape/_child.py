"""The process that reads tapes: it is started with the path of the module for that, asked through standard input, and has no rights soon.

It stands for itself: of the package nothing else is imported, so that what it needs before it gives up its rights is little.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

loader = ExtensionFileLoader("systape._native", sys.argv[1])
spec = spec_from_loader("systape._native", loader)
if spec is None:
    sys.exit("systape: the module that reads tapes is missing")
native = module_from_spec(spec)
loader.exec_module(native)
native.child()
