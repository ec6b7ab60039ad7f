"""Create, delete and create the stack again on an AWS account of this machine (tools/account.py).

Usage: emulator.py SVC translated.yaml
"""

import json
import os
import subprocess
import sys

import botocore.exceptions
import botocore.parsers

from account import Account, cut, want

STACK = "svc-smoke"
KEPT = [f"{STACK}-{name}" for name in ("ledger", "movements", "projects", "resolutions", "wallets")]
TABLES = sorted(KEPT + [f"{STACK}-rates", f"{STACK}-transient"])


class Emulator(Account):
    """The account with one stack, and its operator."""

    def __init__(self, svc, template):
        super().__init__(template)
        self.svc = svc

    def create(self, template=None):
        super().create(STACK, template, Stage="smoke")

    def delete(self):
        self.client("cloudformation").delete_stack(StackName=STACK)

    def tables(self):
        return sorted(self.client("dynamodb").list_tables()["TableNames"])

    def versions(self, kind):
        """Return the number of published versions of a function."""
        return len(self.client("lambda").list_versions_by_function(FunctionName=self.function(kind))["Versions"]) - 1

    def operate(self, *args):
        """Run svc on the account and return its exit code and what it printed."""
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | self.environment()
        done = subprocess.run([self.svc, *args, "--stage", "smoke", "--output", "json"], env=environment, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr


def found(emulator, check):
    """Return the subjects of preflight's broken findings of one check."""
    _, findings, _ = emulator.operate("preflight", "--released", "--config-file", "none")
    return sorted(f["subject"] for f in findings if f["severity"] == "broken" and f["check"] == check)


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
    want("versions of the SMS function", emulator.versions("Sms"), 1)

    code, tables, errors = emulator.operate("protect")
    want("svc protect", (code, [t["deletion_protection"] for t in tables or []], errors), (0, ["switched on"] * len(KEPT), ""))
    want("svc protect again", [t["deletion_protection"] for t in emulator.operate("protect")[1]], ["was on"] * len(KEPT))
    for name in KEPT:
        try:
            emulator.client("dynamodb").delete_table(TableName=name)
            sys.exit(f"{name} was deleted although it is protected")
        except emulator.client("dynamodb").exceptions.ClientError as error:
            print(f"{name} cannot be deleted: {error.response['Error']['Code']}")
        emulator.client("dynamodb").update_table(TableName=name, DeletionProtectionEnabled=False)

    emulator.delete()
    want("tables after the deletion", emulator.tables(), KEPT)
    for name in KEPT:
        emulator.client("dynamodb").delete_table(TableName=name)
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
        emulator = Emulator(svc, template)
        case(emulator, emulator.template)
    print("left out, and so not shown:", ", ".join(f"{count} {kind}" for kind, count in sorted(gone.items())))


main()
