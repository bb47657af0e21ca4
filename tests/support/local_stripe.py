"""localstripe on loopback only: its own start-up listens on every interface.

Prints the port it took, for `0` a free one, and serves until it is stopped.
"""

import os
import socket
import sys
import threading

from aiohttp import web
from localstripe.server import app


def stop_with_parent() -> None:
    """The parent holds the other end of standard input; when it is gone, so is this."""
    sys.stdin.buffer.read()
    os._exit(0)


listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
print(listener.getsockname()[1], flush=True)
threading.Thread(target=stop_with_parent, daemon=True).start()
web.run_app(app, sock=listener, access_log=None, print=None)
