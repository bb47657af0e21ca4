"""Python imports this at start-up of the emulator, whose PYTHONPATH names this folder and nothing else does.

The emulator answers its functions through the standard library's HTTP server, which leaves Nagle's
algorithm on: each invocation then waits 40 ms for a delayed acknowledgement. The attribute below is the
library's documented switch.
"""

import socketserver

socketserver.StreamRequestHandler.disable_nagle_algorithm = True
