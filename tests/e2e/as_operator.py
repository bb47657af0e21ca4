"""What an operator does to a deployed stack and no port of the product offers.

Reads one JSON object a line from standard input, writes one JSON value a line.
    {"do": "invoke", "function": NAME, "payload": ...}   the function's answer; an error is {"error": ...}
    {"do": "logs", "group": NAME}                        every message of a log group, as a list
    {"do": "redrive", "dlq": URL, "queue": URL}          moves every dead letter, as the SQS console does
    {"do": "polling", "enabled": BOOL}                   stops or starts the consumer's event source
    {"do": "figure", "alarm": NAME, "value": NUMBER}     puts a figure that an alarm watches; the alarm's state then
    {"do": "alarms"}                                     the name of every alarm
    {"do": "environment", "function": NAME, "set": {..}} changes variables of a function
"""

import base64
import json
import os
import sys
import time

import boto3
from botocore.config import Config


def client(service):
    return boto3.client(
        service,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        region_name=os.environ["AWS_REGION"],
        config=Config(retries={"max_attempts": 1}, read_timeout=90, proxies={}),
    )


def invoke(command):
    payload = command["payload"]
    # Bytes that are no JSON travel as base64.
    body = base64.b64decode(command["bytes"]) if "bytes" in command else json.dumps(payload).encode()
    answer = client("lambda").invoke(FunctionName=command["function"], Payload=body)
    text = answer["Payload"].read().decode("utf-8", "replace")
    if "FunctionError" in answer:
        return {"error": text}
    return json.loads(text) if text else None


def logs(command):
    pages = client("logs").get_paginator("filter_log_events").paginate(logGroupName=command["group"])
    return [event["message"] for page in pages for event in page["events"]]


def redrive(command):
    sqs = client("sqs")
    moved = []
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        new = 0
        answer = sqs.receive_message(QueueUrl=command["dlq"], MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in answer.get("Messages", []):
            handle = {"QueueUrl": command["dlq"], "ReceiptHandle": message["ReceiptHandle"]}
            if message["Body"] in moved:
                # It has been to the queue and is back: dead again.
                sqs.change_message_visibility(**handle, VisibilityTimeout=0)
                continue
            sqs.send_message(QueueUrl=command["queue"], MessageBody=message["Body"], MessageGroupId="redrive")
            sqs.delete_message(**handle)
            moved.append(message["Body"])
            new += 1
        # What the steward looks at just now is hidden for a few seconds.
        hidden = "ApproximateNumberOfMessagesNotVisible"
        left = sqs.get_queue_attributes(QueueUrl=command["dlq"], AttributeNames=[hidden])["Attributes"][hidden]
        if not new and left == "0":
            break
    return len(moved)


def polling(command):
    wanted = "Enabled" if command["enabled"] else "Disabled"
    functions = client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=command["enabled"])
        for _ in range(100):
            if functions.get_event_source_mapping(UUID=mapping["UUID"])["State"] == wanted:
                break
            time.sleep(0.05)
    return wanted


def figure(command):
    cloudwatch = client("cloudwatch")
    alarm = cloudwatch.describe_alarms(AlarmNames=[command["alarm"]])["MetricAlarms"][0]
    data = {"MetricName": alarm["MetricName"], "Dimensions": alarm["Dimensions"], "Value": command["value"]}
    cloudwatch.put_metric_data(Namespace=alarm["Namespace"], MetricData=[data])
    return cloudwatch.describe_alarms(AlarmNames=[command["alarm"]])["MetricAlarms"][0]["StateValue"]


def alarms(_command):
    pages = client("cloudwatch").get_paginator("describe_alarms").paginate()
    return [alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"]]


def environment(command):
    functions = client("lambda")
    known = functions.get_function_configuration(FunctionName=command["function"])["Environment"]["Variables"]
    functions.update_function_configuration(
        FunctionName=command["function"], Environment={"Variables": known | command["set"]}
    )
    return {name: known.get(name) for name in command["set"]}


COMMANDS = {
    "alarms": alarms,
    "figure": figure,
    "invoke": invoke,
    "logs": logs,
    "redrive": redrive,
    "polling": polling,
    "environment": environment,
}

for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(COMMANDS[asked["do"]](asked)), flush=True)
