"""Signs deliveries as PayPal does, with a key and a certificate made for this run.

Reads one JSON object from standard input, writes one to standard output:
    {"webhook_id", "url", "deliveries": [{"transmission", "body"}]}
    {"certificate": PEM, "headers": [{...}]}, in the order of the deliveries
"""

import base64
import json
import sys
import zlib
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

asked = json.load(sys.stdin)
now = datetime.now(tz=timezone.utc)
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "messageverificationcerts.paypal.com")])
certificate = (
    x509.CertificateBuilder()
    .subject_name(name)
    .issuer_name(name)
    .public_key(key.public_key())
    .serial_number(x509.random_serial_number())
    .not_valid_before(now - timedelta(hours=1))
    .not_valid_after(now + timedelta(days=1))
    .sign(key, hashes.SHA256())
)


def headers(delivery: dict[str, str]) -> dict[str, str]:
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    crc32 = zlib.crc32(delivery["body"].encode())
    signed = f"{delivery['transmission']}|{time}|{asked['webhook_id']}|{crc32}"
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return {
        "content-type": "application/json",
        "paypal-transmission-id": delivery["transmission"],
        "paypal-transmission-time": time,
        "paypal-transmission-sig": base64.b64encode(signature).decode(),
        "paypal-auth-algo": "SHA256withRSA",
        "paypal-cert-url": asked["url"],
    }


print(
    json.dumps(
        {
            "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode(),
            "headers": [headers(delivery) for delivery in asked["deliveries"]],
        }
    )
)
