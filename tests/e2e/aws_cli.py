"""The AWS command line as the runbook calls it, through boto3: `aws SERVICE OPERATION --option value`.

The real one is no package of this repository's tools. What the runbook needs of it: options of an operation's
input, switches, structures as `A=x,B=true`, `file://`, `--query` and `--output text`.
"""

import json
import os
import sys
from pathlib import Path

import boto3
import jmespath
from botocore import xform_name
from botocore.config import Config


def main(service, operation, *words):
    client = boto3.client(
        service,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        region_name=os.environ["AWS_REGION"],
        config=Config(retries={"max_attempts": 1}, read_timeout=60, proxies={}),
    )
    method = operation.replace("-", "_")
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    names = {xform_name(name, "-"): (name, member.type_name) for name, member in shape.members.items()}
    arguments, query, output = {}, None, "json"
    words = list(words)
    while words:
        option = words.pop(0).removeprefix("--")
        if option == "query":
            query = words.pop(0)
        elif option == "output":
            output = words.pop(0)
        elif names.get(option.removeprefix("no-"), ("", ""))[1] == "boolean":
            arguments[names[option.removeprefix("no-")][0]] = not option.startswith("no-")
        else:
            arguments[names[option][0]] = value(words.pop(0), names[option][1])
    answer = getattr(client, method)(**arguments)
    answer.pop("ResponseMetadata", None)
    found = jmespath.search(query, answer) if query else answer
    if found in (None, {}):
        return
    if output == "text":
        print("\t".join(found) if isinstance(found, list) else found)
    else:
        print(json.dumps(found, indent=4, default=str))


def value(text, kind):
    if text.startswith("file://"):
        return Path(text.removeprefix("file://")).read_text()
    if kind == "structure":
        pairs = (pair.split("=", 1) for pair in text.split(","))
        return {name: {"true": True, "false": False}.get(word, word) for name, word in pairs}
    if kind == "integer":
        return int(text)
    return text.split(",") if kind == "list" else text


main(*sys.argv[1:])
