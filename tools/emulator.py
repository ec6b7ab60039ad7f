"""Create, delete and create the stack again on an emulator of AWS that this project did not write: moto.

Usage: emulator.py SVC translated.yaml

What this does not show. moto knows neither the roll-back of a creation that failed nor RetainExceptOnCreate: it always
deletes such tables with the stack. It reports success for types that it does not know, so these are cut out first, with
what refers to them; the program prints them. An alias is replaced by its function. It runs no transform, no Rules and no
AllowedPattern, refuses a name that exists while it creates and not before, and fails at an update of this template.
"make smoke-aws" is there for all of that.
"""

import collections
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import zipfile

import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers
import yaml

ONCE = botocore.config.Config(retries={"max_attempts": 0}, read_timeout=300)
STACK = "svc-smoke"
REGION = "eu-west-1"
KEPT = [f"{STACK}-{name}" for name in ("ledger", "projects", "wallets")]
TABLES = sorted(KEPT + [f"{STACK}-rates", f"{STACK}-transient"])
# What moto 5.2.5 does not know, or knows without what the template uses: it takes no path of any method for a method.
UNKNOWN = {
    "AWS::ApiGateway::Deployment",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::CodeDeploy::Application",
    "AWS::CodeDeploy::DeploymentGroup",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Scheduler::Schedule",
}


def references(value):
    """Yield the logical IDs that a value refers to."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key == "Ref":
            yield inner
        elif key == "Fn::GetAtt":
            yield inner[0]
        elif key == "Fn::Sub":
            yield from re.findall(r"\$\{([A-Za-z0-9]+)", json.dumps(inner))
        elif key == "DependsOn":
            yield from [inner] if isinstance(inner, str) else inner
        elif key != "UpdatePolicy":
            yield from references(inner)


def cut(path):
    """Return the template with what moto supports, and the types that are left out."""
    with open(path, encoding="utf-8") as file:
        template = yaml.safe_load(file)
    text = json.dumps(template)
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Alias":
            function = resource["Properties"]["FunctionName"]["Ref"]
            text = text.replace(json.dumps({"Ref": name}), json.dumps({"Fn::GetAtt": [function, "Arn"]}))
            text = text.replace("${%s}" % name, "${%s.Arn}" % function)
    template = json.loads(text)
    resources = template["Resources"]
    gone = {name for name, resource in resources.items() if resource["Type"] in UNKNOWN}
    while True:
        more = {name for name, resource in resources.items() if name not in gone and gone.intersection(references(resource))}
        if not more:
            break
        gone |= more
    template["Resources"] = {name: resource for name, resource in resources.items() if name not in gone}
    template["Outputs"] = {name: output for name, output in template["Outputs"].items() if not gone.intersection(references(output))}
    return template, collections.Counter(resources[name]["Type"] for name in gone)


class Emulator:
    """A moto server of this run, and what is asked of it."""

    def __init__(self, svc):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.svc = svc
        program = os.path.join(os.path.dirname(sys.executable), "moto_server")
        self.process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)

    def client(self, service):
        return boto3.client(service, region_name=REGION, endpoint_url=self.url, aws_access_key_id="local", aws_secret_access_key="local", config=ONCE)

    def upload(self):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("bootstrap", "")
        s3 = self.client("s3")
        s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket="bucket", Key="value", Body=content.getvalue())

    def template(self, template):
        """Store a template, which is too large to be sent, and return where it is."""
        self.client("s3").put_object(Bucket="bucket", Key="template.json", Body=json.dumps(template).encode())
        return {
            "StackName": STACK,
            "TemplateURL": "https://bucket.s3.amazonaws.com/template.json",
            "Parameters": [{"ParameterKey": "Stage", "ParameterValue": "smoke"}],
            "Capabilities": ["CAPABILITY_IAM"],
        }

    def create(self, template):
        self.client("cloudformation").create_stack(**self.template(template))

    def delete(self):
        self.client("cloudformation").delete_stack(StackName=STACK)

    def tables(self):
        return sorted(self.client("dynamodb").list_tables()["TableNames"])

    def versions(self, kind):
        """Return the number of published versions of a function."""
        functions = self.client("lambda").list_functions()["Functions"]
        name = next(f["FunctionName"] for f in functions if f"-{kind}-" in f["FunctionName"])
        return len(self.client("lambda").list_versions_by_function(FunctionName=name)["Versions"]) - 1

    def operate(self, *args):
        """Run svc on the emulator and return its exit code and what it printed."""
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION}
        environment |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
        done = subprocess.run([self.svc, *args, "--stage", "smoke", "--output", "json"], env=environment, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, want {wanted}")
    print(f"{what}: {got}")


def found(emulator, check):
    """Return the subjects of preflight's broken findings of one check."""
    _, findings, _ = emulator.operate("preflight", "--released", "--config-file", "none")
    return sorted(f["subject"] for f in findings if f["Severity"] == "broken" and f["check"] == check)


def failed_creation(emulator, template):
    """Show that the tables of a creation that fails can be deleted, which roll-back does in AWS and moto does not."""
    broken = json.loads(json.dumps(template))
    broken["Resources"]["ChargePolicy"]["Properties"]["PolicyDocument"] = {"Version": "2012-10-17"}
    broken["Resources"]["ChargePolicy"]["DependsOn"] = ["Projects"]
    try:
        emulator.create(broken)
    except botocore.exceptions.ClientError as error:
        print(f"a creation with a policy that IAM refuses fails: {error.response['Error']['Code']}")
    else:
        sys.exit("a creation with a policy that IAM refuses succeeded")
    left = [name for name in emulator.tables() if name in KEPT]
    want("it left tables", (bool(left), left), (True, left))
    for name in left:
        emulator.client("dynamodb").delete_table(TableName=name)
    want("tables after their deletion", [name for name in emulator.tables() if name in KEPT], [])


def leftovers(emulator, template):
    """Show that a table which a former stack left ends a creation, and that svc preflight names it before."""
    emulator.client("dynamodb").create_table(
        TableName=KEPT[0],
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    want("svc preflight names", found(emulator, "table"), KEPT[:1])
    try:
        emulator.create(template)
    except botocore.parsers.ResponseParserError as error:  # moto returns the error of DynamoDB as it is
        want("the creation ends in", "already exists" in str(error), True)
    else:
        sys.exit("a creation over a table that exists succeeded")


def life(emulator, template):
    """Create, protect, delete and create the stack again."""
    want("svc preflight names", found(emulator, "table") + found(emulator, "stack"), [])
    emulator.create(template)
    want("the creation", stack_status(emulator), "CREATE_COMPLETE")
    want("tables", emulator.tables(), TABLES)
    for name in KEPT:
        protected = emulator.client("dynamodb").describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled", False)
        want(f"{name} is protected by its creation", protected, False)
    want("versions of the SMS function", emulator.versions("SmsFunction"), 1)

    code, tables, errors = emulator.operate("protect")
    want("svc protect", (code, [t["deletion_protection"] for t in tables or []], errors), (0, ["switched on"] * 3, ""))
    want("svc protect again", [t["deletion_protection"] for t in emulator.operate("protect")[1]], ["was on"] * 3)
    for name in KEPT:
        try:
            emulator.client("dynamodb").delete_table(TableName=name)
            sys.exit(f"{name} was deleted although it is protected")
        except emulator.client("dynamodb").exceptions.ClientError as error:
            print(f"{name} cannot be deleted: {error.response['Error']['Code']}")
        emulator.client("dynamodb").update_table(TableName=name, DeletionProtectionEnabled=False)

    emulator.delete()
    want("tables after the deletion, all of which moto deletes", emulator.tables(), [])
    emulator.create(template)
    want("the creation after the deletion", stack_status(emulator), "CREATE_COMPLETE")
    want("tables", emulator.tables(), TABLES)


def stack_status(emulator):
    stacks = emulator.client("cloudformation").describe_stacks()["Stacks"]
    return next((s["StackStatus"] for s in stacks if s["StackName"] == STACK), None)


def main():
    svc, translated = sys.argv[1:]
    template, gone = cut(translated)
    for case in (failed_creation, leftovers, life):
        emulator = Emulator(svc)
        try:
            emulator.upload()
            case(emulator, template)
        finally:
            emulator.process.terminate()
            emulator.process.wait()
    print("left out, and so not shown:", ", ".join(f"{count} {kind}" for kind, count in sorted(gone.items())))


main()
