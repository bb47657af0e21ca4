"""Makes the two tables of template.yaml on an emulator, exactly as the template defines them.

usage: tables.py TEMPLATE ENDPOINT
"""

import sys
from pathlib import Path

import boto3
from samtranslator.yaml_helper import yaml_parse

template, endpoint = sys.argv[1:]
resources = yaml_parse(Path(template).read_text())["Resources"]
dynamodb = boto3.client(
    "dynamodb",
    endpoint_url=endpoint,
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
)
for name in ("LedgerTable", "StateTable"):
    properties = resources[name]["Properties"]
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    dynamodb.create_table(TableName=name, **{key: properties[key] for key in wanted if key in properties})
