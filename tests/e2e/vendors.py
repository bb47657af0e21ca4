"""The providers' own packages: what they sign we must accept, and what we sign they must accept.

Reads one JSON object a line from standard input, writes one JSON object a line.
    {"do": "sign", "by": NAME, "secret", "payload", "id", "url"}   the headers, and the body to send
    {"do": "verify", "by": NAME, "secret", "payload", "headers", "url"}   whether the package accepts it
"""

import json
import sys
import time
from datetime import datetime, timezone
from urllib.parse import parse_qsl, urlencode


def stripe(asked):
    from stripe import WebhookSignature

    header = WebhookSignature.generate_signature_header(asked["payload"], asked["secret"], int(time.time()))
    return {"stripe-signature": header}, asked["payload"]


def webhook_headers(prefix, webhook, asked):
    now = datetime.now(tz=timezone.utc)
    signature = webhook(asked["secret"]).sign(asked["id"], now, asked["payload"])
    headers = {"id": asked["id"], "timestamp": str(int(now.timestamp())), "signature": signature}
    return {f"{prefix}-{name}": value for name, value in headers.items()}, asked["payload"]


def standardwebhooks(asked):
    from standardwebhooks.webhooks import Webhook

    return webhook_headers("webhook", Webhook, asked)


def svix(asked):
    from svix.webhooks import Webhook

    return webhook_headers("svix", Webhook, asked)


def slack(asked):
    from slack_sdk.signature import SignatureVerifier

    now = str(int(time.time()))
    signature = SignatureVerifier(asked["secret"]).generate_signature(timestamp=now, body=asked["payload"])
    return {"x-slack-request-timestamp": now, "x-slack-signature": signature}, asked["payload"]


def twilio(asked):
    from twilio.request_validator import RequestValidator

    form = dict(parse_qsl(asked["payload"], keep_blank_values=True))
    return {"x-twilio-signature": RequestValidator(asked["secret"]).compute_signature(asked["url"], form)}, asked["payload"]


def braintree(asked):
    from braintree import BraintreeGateway, Configuration, Environment

    public, private = asked["secret"].split(":", 1)
    gateway = BraintreeGateway(Configuration(Environment.Sandbox, "merchant", public_key=public, private_key=private))
    return {}, urlencode(gateway.webhook_testing.sample_notification(asked["payload"], asked["id"]))


def adyen(asked):
    from Adyen.util import generate_notification_sig

    batch = json.loads(asked["payload"])
    for item in batch["notificationItems"]:
        request = item["NotificationRequestItem"]
        signature = generate_notification_sig(request, asked["secret"]).decode()
        request["additionalData"] = {"hmacSignature": signature}
    return {}, json.dumps(batch)


def adyen_platform(asked):
    from Adyen.util import generate_payload_sig

    return {"hmacsignature": generate_payload_sig(asked["payload"].encode(), asked["secret"]).decode()}, asked["payload"]


def gocardless(asked):
    from gocardless_pro import webhooks
    from gocardless_pro.errors import InvalidSignatureError

    try:
        return bool(webhooks.parse(asked["payload"], asked["secret"], asked["headers"]["webhook-signature"]))
    except InvalidSignatureError:
        return False


def paddle(asked):
    from paddle_billing.Notifications import PaddleSignature

    now = str(int(time.time()))
    digest = PaddleSignature.calculate_hmac(asked["secret"], f"{now}:{asked['payload']}".encode()).hexdigest()
    scheme = PaddleSignature()
    return {scheme.HEADER.lower(): f"{scheme.TIMESTAMP}={now};{scheme.HASH_ALGORITHM_1}={digest}"}, asked["payload"]


def mollie(asked):
    from mollie.utils.webhooks.signature_validator import SignatureValidator

    signature = SignatureValidator.create_signature(asked["payload"], asked["secret"])
    return {SignatureValidator.SIGNATURE_HEADER.lower(): f"sha256={signature}"}, asked["payload"]


def square(asked):
    from square.utils.webhooks_helper import verify_signature

    return verify_signature(
        request_body=asked["payload"],
        signature_header=asked["headers"]["x-square-hmacsha256-signature"],
        signature_key=asked["secret"],
        notification_url=asked["url"],
    )


def razorpay(asked):
    from razorpay.errors import SignatureVerificationError
    from razorpay.utility import Utility

    try:
        signature = asked["headers"]["x-razorpay-signature"]
        return Utility().verify_webhook_signature(asked["payload"], signature, asked["secret"])
    except SignatureVerificationError:
        return False


PACKAGES = {
    package.__name__: package
    for package in (stripe, standardwebhooks, svix, slack, twilio, braintree, adyen, adyen_platform, paddle, mollie)
    + (gocardless, razorpay, square)
}

for line in sys.stdin:
    asked = json.loads(line)
    said = PACKAGES[asked["by"]](asked)
    if asked["do"] == "sign":
        headers, body = said
        said = {"headers": headers, "body": body}
    else:
        said = {"accepted": said}
    print(json.dumps(said), flush=True)
