"""Signs payloads with the providers' own packages, as their servers would.

Reads one JSON object a line from standard input: {"sdk", "secret", "payload", "id"}; writes the headers
of each as one JSON object a line.
"""

import json
import sys
import time
from datetime import datetime, timezone

from standardwebhooks.webhooks import Webhook
from stripe import WebhookSignature


def stripe(request: dict[str, str]) -> dict[str, str]:
    header = WebhookSignature.generate_signature_header(request["payload"], request["secret"], int(time.time()))
    return {"stripe-signature": header}


def standardwebhooks(request: dict[str, str]) -> dict[str, str]:
    now = datetime.now(tz=timezone.utc)
    signature = Webhook(request["secret"]).sign(request["id"], now, request["payload"])
    return {
        "webhook-id": request["id"],
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }


SDKS = {"stripe": stripe, "standardwebhooks": standardwebhooks}

for line in sys.stdin:
    wanted = json.loads(line)
    print(json.dumps(SDKS[wanted["sdk"]](wanted)))
