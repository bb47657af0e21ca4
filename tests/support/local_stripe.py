"""localstripe on loopback only: its own start-up listens on every interface.

Beside it, at PayPal's paths, a PayPal that sells one thing: whatever capture is asked for is completed,
9.00 EUR, for whoever shows a token that a client's id and secret were exchanged for. Prints the port it
took, for `0` a free one, and serves until it is stopped.
"""

import os
import secrets
import socket
import sys
import threading

from aiohttp import web
from localstripe.server import app


TOKEN = secrets.token_hex(16)
CAPTURES = "/v2/payments/captures/"


def stop_with_parent() -> None:
    """The parent holds the other end of standard input; when it is gone, so is this."""
    sys.stdin.buffer.read()
    os._exit(0)


@web.middleware
async def paypal(request: web.Request, handler):
    authorization = request.headers.get("Authorization", "")
    if request.path == "/v1/oauth2/token" and request.method == "POST":
        form = await request.post()
        if not authorization.startswith("Basic ") or form.get("grant_type") != "client_credentials":
            return web.json_response({"error": "invalid_client"}, status=401)
        return web.json_response({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 32400})
    if request.path.startswith(CAPTURES):
        if authorization != f"Bearer {TOKEN}":
            return web.json_response({"name": "AUTHENTICATION_FAILURE"}, status=401)
        amount = {"currency_code": "EUR", "value": "9.00"}
        return web.json_response({"id": request.path[len(CAPTURES) :], "status": "COMPLETED", "amount": amount})
    return await handler(request)


listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
print(listener.getsockname()[1], flush=True)
threading.Thread(target=stop_with_parent, daemon=True).start()
app.middlewares.insert(0, paypal)
web.run_app(app, sock=listener, access_log=None, print=None)
