"""Deploying template.yaml to the emulator the way a team deploys it to AWS.

The binaries are those of cargo's development build, laid out as `sam build` would (package.py); the
template stays as it is but for their place, and `sam deploy` does the rest. Two things of the template
the emulator leaves out, so they are done here afterwards, and the signing secret gets published test keys
where a team on AWS stores its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

import package
from emulator import HOST, REGION
from package import ROOT, TEMPLATE

SECRETS = ROOT / "infra" / "local-secrets.json"
# What calls to providers' APIs and to the replay route carry on the local stack: keyed by secret.
OTHER_SECRETS = ROOT / "infra" / "local-outbound-secrets.json"
STACK = "oncehook"
BUCKET = "oncehook-build"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_SESSION_TOKEN": "",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}


class DeployError(Exception):
    """The stack could not be deployed; the text says why and what to do."""


# The emulator shares this machine's cores with every function process: a burst makes it slower than AWS
# ever is, and the receiver's deadlines would refuse what AWS would have stored.
PATIENCE_MS = {
    "store_attempt_ms": 5_000,
    "store_total_ms": 6_000,
    "send_attempt_ms": 3_000,
    "send_total_ms": 4_000,
    "secret_attempt_ms": 5_000,
    "secret_total_ms": 6_000,
}


@dataclass(frozen=True)
class Plan:
    """What is to be deployed, complete: two equal digests deploy the same thing."""

    directory: Path
    binaries: Path
    endpoint: str
    policy_overrides: str = ""
    release: str = ""
    parameters: dict[str, str] = field(default_factory=dict)

    def template_parameters(self) -> dict[str, str]:
        """The template's parameters for a stack on this machine; the caller's own come last and win."""
        return {
            "Stage": "local",
            "PublicUrl": api_url(self.endpoint),
            "Architecture": _architecture(),
            "DeletionProtection": "false",
            "ReplayRoute": "on",
            "PolicyOverrides": json.dumps(PATIENCE_MS | json.loads(self.policy_overrides or "{}")),
            "Release": self.release,
        } | self.parameters

    def digest(self) -> str:
        """Changes whenever anything that is deployed changes."""
        digest = hashlib.sha256()
        for name, binary in package.binaries_by_function().items():
            digest.update(f"{name}={_file_digest(package.compiled(self.binaries, binary))}\n".encode())
        for file in (TEMPLATE, SECRETS, OTHER_SECRETS):
            digest.update(file.read_bytes())
        digest.update(json.dumps(self.template_parameters(), sort_keys=True).encode())
        return digest.hexdigest()


def place_build(plan: Plan) -> None:
    build = plan.directory / "build"
    package.place(plan.binaries, build, archived=True)
    # JSON is YAML; sam reads parameters from a file only under this name.
    (build / "parameters.yaml").write_text(json.dumps(plan.template_parameters()))


def deploy(plan: Plan) -> None:
    """`sam deploy` of the placed build; its output goes to `deploy.log`."""
    client("s3", plan.endpoint).create_bucket(Bucket=BUCKET)
    build = plan.directory / "build"
    log_file = plan.directory / "deploy.log"
    command = [
        str(Path(sys.executable).with_name("sam")), "deploy",
        "--template-file", str(build / "template.yaml"),
        "--parameter-overrides", f"file://{build / 'parameters.yaml'}",
        "--stack-name", STACK,
        "--s3-bucket", BUCKET,
        "--region", REGION,
        "--capabilities", "CAPABILITY_IAM",
        "--no-confirm-changeset",
        "--no-fail-on-empty-changeset",
        "--no-progressbar",
        # The emulator's way to choose the API's id, so that the URL is known beforehand and stays the same.
        "--tags", f"ms-custom-id={STACK}",
    ]  # fmt: skip
    with log_file.open("wb") as log:
        result = subprocess.run(
            command,
            cwd=build,
            env=_sam_environment(plan.directory, plan.endpoint),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if result.returncode != 0:
        lines = log_file.read_text(errors="replace").splitlines()
        last = "\n".join(f"  {line}" for line in lines[-25:])
        raise DeployError(f"sam deploy failed; the whole output is in {log_file}, the end of it:\n{last}")


def finish(outputs: dict[str, str], endpoint: str) -> None:
    """Do what the emulator leaves out of the template, and store the published test keys."""
    dynamodb = client("dynamodb", endpoint)
    # The template's own tables, which are not the outputs' where restored ones are named.
    described = client("cloudformation", endpoint).describe_stack_resources(StackName=STACK)
    own = {item["LogicalResourceId"]: item["PhysicalResourceId"] for item in described["StackResources"]}
    described = dynamodb.describe_time_to_live(TableName=own["LedgerTable"])
    if described["TimeToLiveDescription"].get("TimeToLiveStatus") != "ENABLED":
        dynamodb.update_time_to_live(
            TableName=own["LedgerTable"],
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"},
        )
    # CloudFormation turns a parameter into what the property wants; the emulator keeps the text "false",
    # which no SDK reads as a yes or no.
    for table in (own["LedgerTable"], own["StateTable"]):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
    # CloudFormation turns a parameter into the number the property wants; the emulator keeps it text,
    # and its poller then fails on every comparison.
    functions = client("lambda", endpoint)
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        if maximum := mapping.get("ScalingConfig", {}).get("MaximumConcurrency"):
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(maximum)}
            )
    secrets = client("secretsmanager", endpoint)
    secrets.put_secret_value(SecretId=outputs["SecretId"], SecretString=SECRETS.read_text())
    for secret, output in (("outbound", "OutboundSecretId"), ("replay", "ReplaySecretId")):
        document = json.loads(OTHER_SECRETS.read_text())[secret]
        secrets.put_secret_value(SecretId=outputs[output], SecretString=json.dumps(document))


def stack_outputs(endpoint: str) -> dict[str, str]:
    stack = client("cloudformation", endpoint).describe_stacks(StackName=STACK)["Stacks"][0]
    return {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}


def environment(outputs: dict[str, str], endpoint: str) -> dict[str, str]:
    """The variables by which tests, the demo and the command line find the stack."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        **CREDENTIALS,
        "ONCEHOOK_STACK": STACK,
        "ONCEHOOK_STAGE": "local",
        "ONCEHOOK_URL": outputs["Url"],
        "ONCEHOOK_LEDGER_TABLE": outputs["LedgerTable"],
        "ONCEHOOK_STATE_TABLE": outputs["StateTable"],
        "ONCEHOOK_QUEUE_URL": outputs["QueueUrl"],
        "ONCEHOOK_DLQ_URL": outputs["DlqUrl"],
        "ONCEHOOK_SECRET_ID": outputs["SecretId"],
        "ONCEHOOK_OUTBOUND_SECRET_ID": outputs["OutboundSecretId"],
        "ONCEHOOK_REPLAY_SECRET_ID": outputs["ReplaySecretId"],
        "ONCEHOOK_RECEIVER_FUNCTION": outputs["ReceiverFunction"],
        "ONCEHOOK_CONSUMER_FUNCTION": outputs["ConsumerFunction"],
        "ONCEHOOK_STEWARD_FUNCTION": outputs["StewardFunction"],
        "ONCEHOOK_RECONCILER_FUNCTION": outputs.get("ReconcilerFunction", ""),
    }


def write_environment(file: Path, variables: dict[str, str]) -> None:
    """As lines for a shell to source. The URL holds a `$`, so values stand in single quotes."""
    if broken := [name for name, value in variables.items() if "'" in value or "\n" in value]:
        raise DeployError(
            f"{', '.join(broken)}: a value with a quote or a line break cannot be written to {file}"
        )
    file.write_text("".join(f"export {name}='{value}'\n" for name, value in variables.items()))


def api_url(endpoint: str) -> str:
    """Where the emulator serves the API under the id that `deploy` chooses, without a resolver's help."""
    return f"{endpoint}/_aws/execute-api/{STACK}/$default"


def client(service: str, endpoint: str) -> Any:
    """A client that can reach the emulator and nothing else, whatever the shell's settings."""
    create: Any = boto3.client  # its stubs know services by literal name only
    return create(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 2}, proxies={}),
    )


def _sam_environment(directory: Path, endpoint: str) -> dict[str, str]:
    """Built from nothing but PATH, like the emulator's: no profile, no proxy, no telemetry."""
    app = directory / "sam"
    app.mkdir(exist_ok=True)
    # sam asks the package index for a newer version of itself unless it has done so within a week.
    (app / "metadata.json").write_text(
        json.dumps({"lastVersionCheck": time.time(), "telemetryEnabled": False})
    )
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(directory / "home"),
        "LANG": "C.UTF-8",
        "AWS_ENDPOINT_URL": endpoint,
        "NO_PROXY": HOST,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.2",
        "__SAM_CLI_APP_DIR": str(app),
        **CREDENTIALS,
    }


def _architecture() -> str:
    machine = platform.machine().lower()
    return "arm64" if machine in ("arm64", "aarch64") else "x86_64"


def _file_digest(file: Path) -> str:
    with file.open("rb") as opened:
        digest = hashlib.sha256()
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
