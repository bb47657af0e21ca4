"""Rules of template.yaml that no general linter knows: numbers that depend on one another, and rights.

Each rule guards a way to lose events or to widen a role by accident, and says so when it is broken. The
code's own constants are not read here; what they rely on in the template is what is checked. Of the code only
the names of its metrics are read: what is counted, watched and explained must be the same.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parent.parent
# A lease lasts to the consumer's deadline plus this, and must end before the message is visible again.
LEASE_MARGIN_S = 10
GATEWAY_LIMIT_MS = 30_000
# The code that counts: in it, a literal of this form is a metric's name.
COUNTING = ("functions/workflow/src", "functions/receiver/src")
METRIC = re.compile(r'"([A-Z][a-z]+[A-Za-z0-9]*)"')
METRICS_TABLE = ("infra/README.md", "### Metrics")
# Where people read about the alarms: file, and heading of the section whose table names them.
ALARM_TABLES = (("infra/README.md", "## Alarms"), ("infra/runbook.md", "## Each alarm, and what to do"))

Resources = dict[str, dict[str, Any]]
Rule = Callable[[Resources], Iterator[str]]


def main() -> int:
    resources = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    broken = [text for rule in RULES for text in rule(resources)]
    for text in broken:
        print(f"template.yaml: {text}", file=sys.stderr)
    print(f"template.yaml: {len(RULES)} rules checked, {len(broken)} broken")
    return 1 if broken else 0


def batches_report_their_failures(resources: Resources) -> Iterator[str]:
    """Without the flag one bad message makes the whole batch fail; a filter deletes what it does not match."""
    for name, mapping in _of_type(resources, "AWS::Lambda::EventSourceMapping"):
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: FunctionResponseTypes must be [ReportBatchItemFailures]"
        if "FilterCriteria" in mapping:
            yield f"{name}: a filter deletes for ever what it does not match"
        if mapping.get("MaximumBatchingWindowInSeconds", 0) != 0:
            yield f"{name}: a batching window delays every event"
    for name, function in _of_type(resources, "AWS::Serverless::Function"):
        if any(event["Type"] == "SQS" for event in function.get("Events", {}).values()):
            yield f"{name}: a SAM SQS event attaches a policy on every queue; use AWS::Lambda::EventSourceMapping"


def messages_stay_hidden_while_they_are_worked(resources: Resources) -> Iterator[str]:
    """Six times the function's timeout, as AWS asks; and no lease may outlive the message's invisibility."""
    for name, queue, function in _worked_queues(resources):
        visibility, timeout = queue["VisibilityTimeout"], function["Timeout"]
        if visibility < 6 * timeout:
            yield f"{name}: VisibilityTimeout {visibility} s is below six times the consumer's {timeout} s"
        if timeout + LEASE_MARGIN_S >= visibility:
            yield f"{name}: a lease of {timeout} + {LEASE_MARGIN_S} s does not end before {visibility} s"


def the_receive_count_is_only_a_net(resources: Resources) -> Iterator[str]:
    """The budget of attempts is the row's; throttling spends receives too, so there must be more of them."""
    for name, queue, _function in _worked_queues(resources):
        redrive = queue.get("RedrivePolicy", {})
        if redrive.get("maxReceiveCount") != 10:
            yield f"{name}: maxReceiveCount must be 10, found {redrive.get('maxReceiveCount')}"
        target = redrive.get("deadLetterTargetArn", {}).get("Fn::GetAtt", [""])[0]
        letters = resources.get(target, {}).get("Properties", {})
        if letters.get("MessageRetentionPeriod", 0) <= queue.get("MessageRetentionPeriod", 0):
            yield f"{name}: dead letters must be kept longer than messages, since they keep their first date"
        if letters.get("RedriveAllowPolicy", {}).get("redrivePermission") != "byQueue":
            yield f"{target or name}: the dead-letter queue must name the queue it serves"


def callers_hear_the_functions_answer(resources: Resources) -> Iterator[str]:
    """The gateway must outlast the receiver, or a provider hears its 503 while the claim goes through."""
    for name, integration in _of_type(resources, "AWS::ApiGatewayV2::Integration"):
        function = _properties(resources, integration["IntegrationUri"])
        limit_ms = integration["TimeoutInMillis"]
        if not function["Timeout"] * 1000 < limit_ms <= GATEWAY_LIMIT_MS:
            yield f"{name}: TimeoutInMillis {limit_ms} must lie between the function's {function['Timeout']} s and 30 s"
        if integration.get("PayloadFormatVersion") != "2.0":
            yield f"{name}: PayloadFormatVersion must be 2.0"
    for name, stage in _of_type(resources, "AWS::ApiGatewayV2::Stage"):
        if stage["StageName"] != "$default":
            yield f"{name}: any stage but $default becomes part of the path, which some providers sign"


def roles_name_what_they_touch(resources: Resources) -> Iterator[str]:
    """No wildcard, no managed policy, no scan; every function has a role of its own."""
    roles = [function.get("Role", {}).get("Fn::GetAtt", [""])[0] for _, function in _functions(resources)]
    if "" in roles or len(set(roles)) != len(roles):
        yield "every function needs a role of its own, declared here"
    for name, role in _of_type(resources, "AWS::IAM::Role"):
        if role.get("ManagedPolicyArns"):
            yield f"{name}: managed policies reach further than this stack"
        for statement in _statements(role):
            label = f"{name}/{statement.get('Sid', '?')}"
            for action in _list(statement["Action"]):
                if "*" in action or action in ("dynamodb:Scan", "sqs:PurgeQueue"):
                    yield f"{label}: action {action}"
            if "*" in _list(statement["Resource"]):
                yield f"{label}: resource *"


def the_consumer_does_not_feed_its_own_queue(resources: Resources) -> Iterator[str]:
    """Lambda stops such loops after sixteen turns, and with them the work."""
    for name, _queue, function in _worked_queues(resources):
        for statement in _statements(_properties(resources, function["Role"])):
            if "sqs:SendMessage" in _list(statement["Action"]):
                yield f"{name}: its consumer may send to it ({statement.get('Sid', '?')})"


def replays_are_closed_unless_asked_for(resources: Resources) -> Iterator[str]:
    """A token in place of a signature: the route, the right to call and the right to read the tokens."""
    guarded = [
        name
        for name, resource in resources.items()
        if "/replay" in str(resource.get("Properties", {})) and resource["Type"] != "AWS::CloudWatch::Dashboard"
    ]
    if len(guarded) != 2:
        yield f"expected a route and a permission for replays, found {', '.join(guarded) or 'nothing'}"
    for name in guarded:
        if resources[name].get("Condition") != "HasReplayRoute":
            yield f"{name}: must stand under the condition HasReplayRoute"
    for policy in resources["ReceiverRole"]["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "Fn::If" not in statement and "ReplaySecret" in str(statement):
                yield f"ReceiverRole/{statement.get('Sid', '?')}: the tokens are read only under HasReplayRoute"


def tables_survive_a_mistake(resources: Resources) -> Iterator[str]:
    for name, table in _of_type(resources, "AWS::DynamoDB::Table"):
        if not table.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
            yield f"{name}: point-in-time recovery is off"
        if "DeletionProtectionEnabled" not in table:
            yield f"{name}: deletion protection is not set"
        if resources[name].get("DeletionPolicy") != "RetainExceptOnCreate":
            yield f"{name}: DeletionPolicy must be RetainExceptOnCreate"
        if "TimeToLiveSpecification" in table and name != "LedgerTable":
            yield f"{name}: only settled rows of the ledger expire"


def restored_tables_are_used_throughout(resources: Resources) -> Iterator[str]:
    """A role or a chart that names the stack's own table would not follow the rest to a restored one."""
    for table, condition in (("LedgerTable", "HasOwnLedger"), ("StateTable", "HasOwnState")):
        for name, resource in resources.items():
            if _names_unconditionally(resource.get("Properties", {}), table, condition):
                yield f"{name}: names {table} outside of !If [{condition}, ...]"


def secrets_are_born_empty(resources: Resources) -> Iterator[str]:
    """CloudFormation writes the value again when it changes here, over what the team has stored."""
    for name, secret in _of_type(resources, "AWS::SecretsManager::Secret"):
        if secret.get("SecretString") != "{}" or "GenerateSecretString" in secret:
            yield f"{name}: SecretString must be {{}} and stay it"


def logs_expire_and_belong_to_the_stack(resources: Resources) -> Iterator[str]:
    for name, group in _of_type(resources, "AWS::Logs::LogGroup"):
        if "RetentionInDays" not in group:
            yield f"{name}: no retention, so it is kept and paid for ever"
    for name, function in _functions(resources):
        if "LogGroup" not in function.get("LoggingConfig", {}):
            yield f"{name}: without a log group of its own Lambda makes one that never expires"


def functions_are_built_from_their_folder(resources: Resources) -> Iterator[str]:
    for name, _function in _functions(resources):
        metadata = resources[name].get("Metadata", {})
        binary = metadata.get("BuildProperties", {}).get("Binary", "")
        if metadata.get("BuildMethod") != "rust-cargolambda" or not (ROOT / "functions" / binary).is_dir():
            yield f"{name}: Metadata must say rust-cargolambda and a Binary that is a folder of functions/"


def alarms_can_be_heard(resources: Resources) -> Iterator[str]:
    for name, alarm in _alarms(resources):
        if missing := {"AlarmActions", "OKActions", "AlarmDescription", "TreatMissingData"} - alarm.keys():
            yield f"{name}: {', '.join(sorted(missing))} missing"


def alarms_are_explained(resources: Resources) -> Iterator[str]:
    """Whoever is woken finds the alarm by its name: what it says, and what to do."""
    alarms = {alarm["AlarmName"]["Fn::Sub"].removeprefix("${AWS::StackName}-") for _, alarm in _alarms(resources)}
    for file, heading in ALARM_TABLES:
        explained = _named_in_table(file, heading)
        for name in sorted(alarms - explained):
            yield f"the alarm {name} is missing from {file}, {heading}"
        for name in sorted(explained - alarms):
            yield f"{file}, {heading}: there is no alarm {name}"


def metrics_are_explained(_resources: Resources) -> Iterator[str]:
    counted, explained = _counted(), {name for name, _function in _explained_metrics()}
    file, heading = METRICS_TABLE
    for name in sorted(counted - explained):
        yield f"the functions count {name}, which is missing from {file}, {heading}"
    for name in sorted(explained - counted):
        yield f"{file}, {heading}: nothing counts {name}"


def what_is_watched_is_counted(resources: Resources) -> Iterator[str]:
    """Of a metric that nobody emits, or another function, an alarm is quiet for ever and says nothing of it."""
    explained = _explained_metrics()
    for name, alarm in _alarms(resources):
        if alarm["Namespace"] == "Oncehook":
            watched = alarm["MetricName"], alarm["Dimensions"][0]["Value"]["Ref"]
            if watched not in explained:
                yield f"{name}: no {watched[0]} comes from {watched[1]}, says {METRICS_TABLE[0]}"
    for name, dashboard in _of_type(resources, "AWS::CloudWatch::Dashboard"):
        for watched in re.findall(r'"Oncehook", "(\w+)", "FunctionName", "\$\{(\w+)\}"', str(dashboard)):
            if watched not in explained:
                yield f"{name}: no {watched[0]} comes from {watched[1]}, says {METRICS_TABLE[0]}"


def the_dashboard_can_be_read(resources: Resources) -> Iterator[str]:
    """CloudWatch refuses one that is no JSON, at the end of a deployment; with and without what is conditional."""
    for name, dashboard in _of_type(resources, "AWS::CloudWatch::Dashboard"):
        text, values = dashboard["DashboardBody"]["Fn::Sub"]
        for choice in (0, 1):
            body = text
            for variable, value in values.items():
                branch = value["Fn::If"][1 + choice]
                branch = branch.get("Ref", branch) if isinstance(branch, dict) else branch
                body = body.replace(f"${{{variable}}}", branch["Fn::Sub"] if isinstance(branch, dict) else branch)
            try:
                json.loads(re.sub(r"\$\{[^}]+\}", "x", body))
            except ValueError as error:
                yield f"{name}: its body is no JSON: {error}"


RULES: tuple[Rule, ...] = (
    batches_report_their_failures,
    messages_stay_hidden_while_they_are_worked,
    the_receive_count_is_only_a_net,
    callers_hear_the_functions_answer,
    roles_name_what_they_touch,
    the_consumer_does_not_feed_its_own_queue,
    replays_are_closed_unless_asked_for,
    tables_survive_a_mistake,
    restored_tables_are_used_throughout,
    secrets_are_born_empty,
    logs_expire_and_belong_to_the_stack,
    functions_are_built_from_their_folder,
    alarms_can_be_heard,
    alarms_are_explained,
    metrics_are_explained,
    what_is_watched_is_counted,
    the_dashboard_can_be_read,
)


def _of_type(resources: Resources, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Never empty: a rule over resources that are not there would hold for ever."""
    found = [(name, r.get("Properties", {})) for name, r in resources.items() if r["Type"] == kind]
    if not found:
        sys.exit(f"template.yaml: no {kind}; the rules in {Path(__file__).name} no longer fit it")
    return found


def _alarms(resources: Resources) -> list[tuple[str, dict[str, Any]]]:
    return _of_type(resources, "AWS::CloudWatch::Alarm")


def _functions(resources: Resources) -> list[tuple[str, dict[str, Any]]]:
    return _of_type(resources, "AWS::Serverless::Function")


def _worked_queues(resources: Resources) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name and properties of each queue that a function polls, and that function's properties."""
    for _name, mapping in _of_type(resources, "AWS::Lambda::EventSourceMapping"):
        queue = mapping["EventSourceArn"]["Fn::GetAtt"][0]
        yield queue, resources[queue]["Properties"], _properties(resources, mapping["FunctionName"])


def _properties(resources: Resources, reference: dict[str, Any]) -> dict[str, Any]:
    name = reference["Ref"] if "Ref" in reference else reference["Fn::GetAtt"][0]
    return dict(resources[name]["Properties"])


def _statements(role: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a conditional statement, the one that may be there."""
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            yield from (s for s in statement.get("Fn::If", [statement]) if isinstance(s, dict) and "Action" in s)


def _counted() -> set[str]:
    """Every metric of the functions; a test or a comment counts nothing, nor does the twin."""
    found: set[str] = set()
    for folder in COUNTING:
        for file in (ROOT / folder).rglob("*.rs"):
            if not {"twin", "twin.rs", "tests", "tests.rs"} & set(file.relative_to(ROOT).parts):
                code = re.sub(r"//.*", "", file.read_text().split("#[cfg(test)]")[0])
                found.update(METRIC.findall(code))
    if len(found) < 40:
        sys.exit(f"only {len(found)} metrics found; the rules in {Path(__file__).name} no longer fit the code")
    return found


def _explained_metrics() -> set[tuple[str, str]]:
    """Each metric of the table with the function it comes from, as the template calls it."""
    return {
        (name, f"{function.strip().capitalize()}Function")
        for row in _table(*METRICS_TABLE)
        for name in re.findall(r"`([^`]+)`", row[0])
        for function in row[1].split(",")
    }


def _named_in_table(file: str, heading: str) -> set[str]:
    """What stands between backticks in the first column of the first table below a heading."""
    return {name for row in _table(file, heading) for name in re.findall(r"`([^`]+)`", row[0])}


def _table(file: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    lines = iter((ROOT / file).read_text().splitlines())
    if heading not in lines:
        sys.exit(f"{file}: no heading {heading!r}; the rules in {Path(__file__).name} no longer fit it")
    rows: list[str] = []
    for line in lines:
        if line.startswith("|"):
            rows.append(line)
        elif rows or line.startswith("#"):
            break
    # The first two rows are the table's own head.
    return [row.split("|")[1:-1] for row in rows[2:]]


def _names_unconditionally(value: Any, table: str, condition: str) -> bool:
    if isinstance(value, dict):
        if "Fn::If" in value and value["Fn::If"][0] == condition:
            return False
        if value.get("Ref") == table or value.get("Fn::GetAtt", [""])[0] == table:
            return True
        return any(_names_unconditionally(part, table, condition) for part in value.values())
    if isinstance(value, list):
        return any(_names_unconditionally(part, table, condition) for part in value)
    return isinstance(value, str) and re.search(rf"\$\{{{table}[.}}]", value) is not None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


if __name__ == "__main__":
    sys.exit(main())
