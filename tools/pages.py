"""Run the commands of the pages of operations, the steps of the workflows and the rehearsal on an account of this machine.

Usage: pages.py DEPLOY SVC translated.yaml, where DEPLOY is the program of tools/deploy, which reads the blocks of a page.

Real are bash, git, the AWS CLI, SAM and svc. These programs are replaced: builds (make build-…, go build) copy a small program,
other targets of make are dry runs, gh keeps releases in a folder after its manual (cli.github.com/manual), sleep returns, aws
runs the AWS CLI in this process, and svc rates sync does nothing, because no source of rates can be reached.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from account import ACCOUNT, REGION, Account, codedeploy_backends, cut, want

ROOT = Path(__file__).resolve().parent.parent
TAG = "v1.2.3"
PROGRAMS = {
    "make": """case " $* " in
  *" --makefile "*" build-"*) echo stub > "$ARTIFACTS_DIR/bootstrap" ;;
  *" build-"*) cp "$STUB" "$ARTIFACTS_DIR/bootstrap" ;;
  *" package "* | *" redeploy "*) exec "$MAKE_PROGRAM" "$@" ;;
  *) exec "$MAKE_PROGRAM" --dry-run SHELL=/bin/true "$@" >/dev/null ;;
esac""",
    "go": """case "$1 ${2:-}" in
  "run ./tools/deploy") shift 2; exec "$DEPLOY" "$@" ;;
  "run ./tools/release") shift 2; "$GO_PROGRAM" build -o "$RELEASES-program" ./tools/release; exec "$RELEASES-program" "$@" ;;
  "build "*) while [ "$1" != -o ]; do shift; done; mkdir -p "$(dirname "$2")"; case $2 in *svc) cp "$SVC" "$2" ;; *) cp "$STUB" "$2" ;; esac ;;
  *) exec "$GO_PROGRAM" "$@" ;;
esac""",
    "gh": """tag() { git rev-parse --verify --quiet "refs/tags/$1" >/dev/null || { echo "gh: no tag $1" >&2; exit 1; }; }
case "$1 $2" in
  "release create")
    [ -n "$GH_TOKEN" ]; tag "$3"; to=$RELEASES/$3; mkdir -p "$to"; shift 3
    while [ $# -gt 0 ]; do case $1 in --verify-tag) ;; --title | --notes-file) shift ;; *) cp "$1" "$to" ;; esac; shift; done ;;
  "release download") [ "$4" = --dir ] && mkdir "$5" && cp "$RELEASES/$3/"* "$5" ;;
  "issue list") ;;
  "attestation verify") [ -f "$3" ] && [ "${*:4}" = "--repo $GITHUB_REPOSITORY --signer-workflow $GITHUB_REPOSITORY/.github/workflows/ci.yml --source-ref refs/tags/$TAG" ] ;;
  "api repos/acme/api/actions/oidc/customization/sub") echo "$SUB_CLAIM_PREFIX" ;;
  *) echo "gh: unknown $*" >&2; exit 1 ;;
esac""",
    "aws": """folder=$(mktemp -d)
code=$(printf '%s\\0' "$PWD" "$@" | curl -sS --data-binary @- "$CLI$folder")
cat "$folder/out"; cat "$folder/err" >&2; rm -r "$folder"; exit "$code\"""",
    # The emulator serves no request.
    "curl": """case "$*" in *x-amzn-RequestId*) echo "401 X-SVC-Request-ID $(cat /proc/sys/kernel/random/uuid)" ;; *) exec "$CURL_PROGRAM" "$@" ;; esac""",
    # No source of exchange rates can be reached.
    "svc": """case "$1 ${2:-}" in "rates sync") ;; *) exec "$SVC_PROGRAM" "$@" ;; esac""",
    "sleep": ":",
}


class Machine:
    """An operator's machine: programs, and a clone of the repository as it is in this folder."""

    def __init__(self, folder, deploy, svc):
        self.folder, self.clone = Path(folder), Path(folder) / "clone"
        programs = self.folder / "bin"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text("#!/bin/bash\nset -eu\n" + text + "\n")
            (programs / name).chmod(0o755)
        (programs / "sam").symlink_to(ROOT / ".local/venv/bin/sam")
        stub = self.folder / "stub"
        subprocess.run(["go", "build", "-ldflags=-s -w", "-o", stub, "./test/hello"], cwd=ROOT, check=True)
        self.variables = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "GOCACHE": subprocess.check_output(["go", "env", "GOCACHE"], text=True).strip(),
            "GOMODCACHE": subprocess.check_output(["go", "env", "GOMODCACHE"], text=True).strip(),
            "GOFLAGS": os.environ.get("GOFLAGS", ""),
            "CGO_ENABLED": "0",
            "SAM_CLI_TELEMETRY": "0",
            "STUB": str(stub),
            "SVC": str(programs / "svc"),
            "SVC_PROGRAM": str(Path(svc).absolute()),
            "DEPLOY": str(Path(deploy).absolute()),
            "RELEASES": str(self.folder / "releases"),
            "MAKE_PROGRAM": shutil.which("make"),
            "GO_PROGRAM": shutil.which("go"),
            "CURL_PROGRAM": shutil.which("curl"),
        }
        origin = self.folder / "origin"
        for name in subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True).split("\0"):
            if name and (ROOT / name).is_file():
                (origin / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, origin / name)
        who = "-c user.name=test -c user.email=test@example.com"
        self.shell(f"git init -q && git add -A && git {who} commit -qm all && git tag {TAG}", origin, {})
        self.checkout(self.clone)

    def checkout(self, folder):
        """Clone the tag, as actions/checkout does, with the pinned SAM CLI as make installs it."""
        self.shell(f"git -c advice.detachedHead=false clone -q --depth 1 --branch {TAG} file://{self.folder}/origin {folder}", self.folder, {})
        (folder / ".local/venv/bin").mkdir(parents=True)
        (folder / ".local/venv/bin/sam").symlink_to(ROOT / ".local/venv/bin/sam")
        return folder

    def shell(self, text, cwd, variables, options="-euo pipefail"):
        """Run commands and return their output. A command that fails ends the run."""
        command = ["bash", *options.split(), "-c", text]
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as yes:  # sam deploy asks
            done = subprocess.run(command, cwd=cwd, env=self.variables | variables, stdin=yes.stdout, capture_output=True, text=True, timeout=900)
            yes.kill()
        if done.returncode:
            raise Failed(text, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout + done.stderr

    def follow(self, account, page, heading="", names=(), change=lambda text: text):
        """Run the blocks of a page with other names. Each name has to be in them."""
        text = subprocess.check_output([self.variables["DEPLOY"], "page", f"docs/{page}.md", *[heading] * bool(heading)], cwd=ROOT, text=True)
        variables = account.environment()
        if page == "deploy":  # the page's first block sets the region for all blocks
            first = subprocess.check_output([self.variables["DEPLOY"], "page", "docs/deploy.md"], cwd=ROOT, text=True)
            text = re.match(r"export .*\n", first)[0] + text
            variables = {key: value for key, value in variables.items() if not key.endswith("REGION")}
        for skipped in re.findall(r"# not run, (.*?): (.*)", text):
            NOT_RUN.add((page, *skipped))
        for old, new in dict(names).items():
            if old not in text:
                raise SystemExit(f"docs/{page}.md, {heading!r}: no {old!r}")
            text = text.replace(old, new)
        began = time.time()
        out = self.shell(change(text), self.clone, variables)
        FOLLOWED.add((page, heading))
        print(f"docs/{page}.md, {heading or 'all'}: {text.count(chr(10))} lines in {time.time() - began:.0f} s")
        return out


class Failed(Exception):
    """A command failed: its text, and what it printed."""

    def __str__(self):
        return "\n".join(self.args)


PAGES = "restore", "uninstall", "upgrade", "key-compromise", "deploy"
FOLLOWED, NOT_RUN = set(), set()


def unfollowed():
    """Return the headings of the pages with blocks that no case followed, or that are no commands."""
    left = []
    for page in PAGES:
        heading, text = "", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        for title, language in re.findall(r"^#+ ([^\n]*)|^ *```(\w*)[^\n]*\n.*?^ *```$", text, re.MULTILINE | re.DOTALL):
            heading = title or heading
            if not title and (language != "sh" or not FOLLOWED.intersection({(page, heading), (page, "")})):
                left.append((page, heading))
    return left


def wrong(what, because, run):
    """Show that a wrong command fails, with a text in what it prints."""
    try:
        run()
    except Failed as failed:
        if because not in failed.args[1]:
            sys.exit(f"{what}: fails, but not with {because!r}: {failed}")
        print(f"{what}: fails: {because}")
    else:
        sys.exit(f"{what}: succeeds")


def prepared(template, *stages):
    """Return an account with stages."""
    account = Account(template)
    for stage in stages:
        account.create(f"svc-{stage}", Stage=stage)
    return account


def project(machine, account, stage):
    """Give the stage a project with credits, and return the ID of the grant."""
    machine.shell(f"svc project create Acme --id acme --stage {stage}", machine.folder, account.environment())
    out = machine.shell(f"svc credit grant acme 1000000 --reason first --stage {stage} --output json 2>/dev/null", machine.folder, account.environment())
    return json.loads(out)["id"]


RESTORE = {"PROJECT": "acme", "CREDITS": "1000000"}


def restore(machine, template):
    """docs/restore.md: the money is that of before, and the stage as protected and as open as before."""

    def run(change=lambda text: text):
        account = prepared(template, "prod")
        names = {"--id ID": "--id " + project(machine, account, "prod"), "2026-03-31T12:00:00Z": datetime.datetime.now(datetime.UTC).isoformat()}
        out = machine.follow(account, "restore", "Restore from backup", names | RESTORE, change)
        return account, out

    account, out = run()
    want("svc protect waits", out.count("ContinuousBackupsUnavailableException"), len(KEPT))
    db = account.client("dynamodb")
    want("tables", sorted(db.list_tables()["TableNames"]), sorted([*KEPT, "svc-prod-rates", "svc-prod-transient"]))
    want("backups", db.list_backups()["BackupSummaries"], [])
    for name in KEPT:
        table = db.describe_table(TableName=name)["Table"]
        recovery = db.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        tags = [tag["Key"] for tag in db.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]]
        got = table["DeletionProtectionEnabled"], recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"], tags
        want(name, got, (True, "ENABLED", ["service", "stage"]))
    balance = machine.shell("svc credit balance acme --stage prod --output json", machine.folder, account.environment())
    want("credits, of which the repeated grant counts once", json.loads(balance)["balance"], 1000000)
    gateway = account.client("apigateway")
    stage = gateway.get_stage(restApiId=gateway.get_rest_apis()["items"][0]["id"], stageName="prod")
    want("throttle", stage["methodSettings"]["*/*"]["throttlingRateLimit"], 1000)
    for kind in "Settle", "SmsResolve":
        reserved = account.client("lambda").get_function_concurrency(FunctionName=account.function(kind))
        want(kind, reserved.get("ReservedConcurrentExecutions"), None)
    # The order before: svc doctor while the throttle is 0.
    doctor = "svc doctor --stage prod\n"
    wrong("svc doctor before the service is open", "HTTP 429", lambda: run(lambda text: text.replace(doctor, "").replace("aws lambda delete", doctor + "aws lambda delete")))


def repair(machine, template):
    """docs/restore.md: each damage that the page repairs is found before, and nothing is found after."""

    def text(**values):
        return {key: {"N" if isinstance(value, int) else "S": str(value)} for key, value in values.items()}

    def partition(key):
        """Where the ledger has an entry (shared/wallet/item.go)."""
        digest = 0x811C9DC5
        for byte in key.encode():
            digest = (digest ^ byte) * 0x01000193 % 2**32
        return f"acme#{digest % 16:x}#{datetime.datetime.fromtimestamp(int(key[:16]) / 1e6, datetime.UTC):%Y-%m-%d}"

    def damaged():
        account = prepared(template, "prod")
        key = project(machine, account, "prod")[:-1]
        charge, forged = f"{key}{'b' if key[-1] == 'a' else 'a'}", f"{key[:-1]}cc"
        names = {"FORGED_ID": forged, "CHARGE_ID": charge, "BALANCE_CHANGE": "-37", "GRANTED_CHANGE": "7", "PROJECT": "acme"}
        names |= {"FORGED_PK": partition(forged), "CHARGE_PK": partition(charge)}
        entry = text(pk=names["CHARGE_PK"], ts="2026-03-31T12:00:00Z", by="a", why="b")
        db = account.client("dynamodb")
        db.put_item(TableName="svc-prod-ledger", Item=entry | text(sk=charge, st="captured", cr=30, uncertain=names["CHARGE_PK"][:-11]))
        db.put_item(TableName="svc-prod-resolutions", Item=entry | text(pk="acme", sk=charge, st="confirmed", cr=30))
        db.put_item(TableName="svc-prod-ledger", Item=entry | text(pk=names["FORGED_PK"], sk=forged, st="grant", cr=7))
        changed = {":more": {"N": "7"}, ":less": {"N": "-7"}}
        db.update_item(TableName="svc-prod-wallets", Key=text(pk="acme"), UpdateExpression="ADD balance :more, granted :less", ExpressionAttributeValues=changed)
        return account, names

    def run(changed=(), change=lambda text: text):
        account, names = damaged()
        machine.follow(account, "restore", "svc ledger verify found something", names | dict(changed), change)
        return json.loads((machine.clone / "findings.json").read_text(encoding="utf-8"))

    found = [finding["damage"] for finding in run()["findings"]]
    want("findings before the repair", sorted(found), ["forged", "unbalanced", "unbalanced", "unexplained"])
    # Each repair is left out once.
    for left, kept, damage in ("aws dynamodb delete-item", "echo", "forged"), ("REMOVE uncertain", "REMOVE spare", "unexplained"), ("ADD balance", "ADD spare", "unbalanced"), ("ADD granted", "ADD spare", "unbalanced"):
        wrong(f"without {left}", damage, lambda: run(change=lambda text: text.replace(left, kept)))
    wrong("the deletion of a charge", "ConditionalCheckFailed", lambda: run({"FORGED_ID": "CHARGE_ID"}))


def tables(account):
    return sorted(account.client("dynamodb").list_tables()["TableNames"])


KEPT = [f"svc-prod-{name}" for name in ("ledger", "movements", "projects", "resolutions", "wallets")]


def uninstall(machine, template):
    """docs/uninstall.md: the stack goes, comes back with its tables, and goes with them."""
    account = prepared(template, "prod")
    project(machine, account, "prod")
    vault = account.client("secretsmanager")
    for name in ("svc/prod/sms/managed/accounts", "svc/staging/sms/managed/accounts"):
        vault.create_secret(Name=name, SecretString="{}")
    machine.follow(account, "uninstall", "1. Delete the stack")
    want("tables", tables(account), KEPT)
    machine.follow(account, "uninstall", "Deploy again")
    want("tables", len(tables(account)), len(KEPT) + 2)
    balance = machine.shell("svc credit balance acme --stage prod --output json", machine.folder, account.environment())
    want("credits", json.loads(balance)["balance"], 1000000)
    machine.follow(account, "uninstall", "1. Delete the stack")
    again = {"no-deletion-protection": "deletion-protection"}
    wrong("tables that stay protected", "can't be deleted while DeletionProtectionEnabled is set", lambda: machine.follow(account, "uninstall", "2. Delete what is left", again))
    machine.follow(account, "uninstall", "2. Delete what is left")
    want("tables", tables(account), [])
    want("secrets", [s["Name"] for s in vault.list_secrets()["SecretList"]], ["svc/staging/sms/managed/accounts"])


def upgrade(machine, template):
    """docs/upgrade.md: both stages are updated; a rollback stops what is in progress and moves the alias."""
    account = prepared(template, "staging", "prod")
    project(machine, account, "staging")
    machine.follow(account, "upgrade", "Upgrade and roll back", {"https://…": "https://api.example.com"})
    stacks = account.client("cloudformation").describe_stacks()["Stacks"]
    want("stacks", {s["StackName"]: s["StackStatus"] for s in stacks if "svc" in s["StackName"]}, dict.fromkeys(("svc-staging", "svc-prod"), "UPDATE_COMPLETE"))
    code, sms = account.client("codedeploy"), account.function("Sms", "prod")
    code.create_application(applicationName="svc-prod-ServerlessDeploymentApplication-1", computePlatform="Lambda")
    named = {"applicationName": "svc-prod-ServerlessDeploymentApplication-1", "deploymentGroupName": "SmsFunction"}
    code.create_deployment_group(**named, serviceRoleArn="arn:aws:iam::123456789012:role/r")
    deployment = code.create_deployment(**named, revision={"revisionType": "String"})["deploymentId"]
    codedeploy_backends[ACCOUNT][REGION].deployments[deployment].status = "InProgress"

    def version():
        return account.client("lambda").get_alias(FunctionName=sms, Name="live")["FunctionVersion"]

    want("live version", version(), "2")
    machine.follow(account, "upgrade", "Roll back", {"FUNCTION": sms, "version N": "version 1"})
    want("deployment", code.get_deployment(deploymentId=deployment)["deploymentInfo"]["status"], "Stopped")
    want("live version", version(), "1")
    wrong("a version that does not exist", "Function not found", lambda: machine.follow(account, "upgrade", "Roll back", {"FUNCTION": sms, "version N": "version 9"}))
    functions = account.client("lambda")
    for n in range(3):
        functions.update_function_configuration(FunctionName=sms, Description=f"change {n}")
        functions.publish_version(FunctionName=sms)
    wrong("the deletion of a live version", "An alias references version 1", lambda: machine.follow(account, "upgrade", "Old versions"))
    functions.update_alias(FunctionName=sms, Name="live", FunctionVersion="5")
    machine.follow(account, "upgrade", "Old versions")
    versions = functions.list_versions_by_function(FunctionName=sms)["Versions"]
    want("versions, and the live one", ([v["Version"] for v in versions], version()), (["$LATEST", "3", "4", "5"], "5"))


def key_compromise(machine, template):
    """docs/key-compromise.md: credentials, a project, and the key of a vendor."""
    account = prepared(template, "prod")
    project(machine, account, "prod")

    def svc(text):
        return json.loads(machine.shell(f"svc {text} --stage prod --output json 2>/dev/null", machine.clone, account.environment()))

    client = svc("credential issue acme")["client_id"]
    names = {"CLIENT_ID": client, f"revoke {client}": f"revoke {client} --yes"}  # a terminal asks
    machine.follow(account, "key-compromise", "A client's secret", names)
    want("active credentials", [c["client_id"] for c in svc("project show acme")["credentials"] if c["active"]], [])
    wrong("a credential that was revoked", "is revoked: not valid", lambda: machine.follow(account, "key-compromise", "A client's secret", names))
    machine.follow(account, "key-compromise", "A whole project", {"PROJECT": "acme", "CREDITS": "500000"})
    want("paused", svc("project show acme")["paused"], False)
    (machine.clone / "new-key.json").write_text(json.dumps({"api_token": "old"}))
    machine.shell("svc vendor account sms textlk --env both --secrets new-key.json --stage prod", machine.clone, account.environment())
    (machine.clone / "new-key.json").write_text(json.dumps({"api_token": "new"}))
    # --untried: no vendor can be reached.
    names = {"KIND VENDOR": "sms textlk", "--env ENV": "--env both --untried"}
    machine.follow(account, "key-compromise", "A vendor account", names)
    secret = account.client("secretsmanager").get_secret_value(SecretId="svc/prod/sms/managed/accounts")["SecretString"]
    want("the secret has the new key", '"new"' in secret, True)
    new = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/NEW"
    another_key(machine, account, "''", new)
    machine.shell("sam deploy --config-env prod", machine.clone, account.environment())  # samconfig.toml names no key
    parameters = account.client("cloudformation").describe_stacks(StackName="svc-prod")["Stacks"][0]["Parameters"]
    want("a parameter that samconfig.toml does not name is kept", next(p["ParameterValue"] for p in parameters if p["ParameterKey"] == "KmsKeyArn"), new)
    another_key(machine, account, new, re.search('`"?KmsKeyArn=(.*?)"?`', KEYS)[1])


KEYS = (ROOT / "docs/key-compromise.md").read_text(encoding="utf-8").partition("## Another KMS key\n")[2].partition("\n## ")[0]


def another_key(machine, account, old, new):
    """docs/key-compromise.md: before each deployment samconfig.toml gets the parameters that the step of the page names."""
    file, kept = machine.clone / "samconfig.toml", (machine.clone / "samconfig.toml").read_text(encoding="utf-8")
    shown, configs = machine.clone / "keys", []
    shown.unlink(missing_ok=True)
    head, values, tail = re.split(r'(?<=parameter_overrides = \["Stage=prod")(.*)(?=\])', kept)
    for step in re.split(r"^\d\. ", KEYS, flags=re.MULTILINE)[1:]:
        for name, value in re.findall('`"?((?:Previous)?KmsKeyArn)=(.*?)"?`', step):
            values = re.sub(f', "{name}=.*?"', "", values) + f', "{name}={ {"OLD": old, "NEW": new}.get(value, value) }"'
        if "sam deploy" in step:
            configs.append(head + values + tail)
    query = "join('|', Stacks[0].Parameters[?ends_with(ParameterKey, 'KmsKeyArn')].ParameterValue)"

    def change(text):
        """Replace samconfig.toml before each deployment, and write the stack's parameters to a file after it."""
        files = iter(configs)
        show = f'aws cloudformation describe-stacks --stack-name svc-prod --query "{query}" --output text >> keys'
        return re.sub("^sam deploy .*", lambda match: f"cat > samconfig.toml <<'END'\n{next(files)}END\n{match[0]}\n{show}", text, flags=re.MULTILINE)

    machine.follow(account, "key-compromise", "Another KMS key", {f"arn:aws:kms:{REGION}:{ACCOUNT}:key/NEW": new}, change)
    file.write_text(kept, encoding="utf-8")
    was, now = old.strip("'"), new.strip("'")
    want("KmsKeyArn and PreviousKmsKeyArn", shown.read_text(encoding="utf-8").splitlines(), [f"{was}|{now}", f"{now}|{was}", f"{now}|"])
    secret = account.client("secretsmanager").describe_secret(SecretId="svc/prod/sms/managed/accounts")
    want("the key of the secret", secret.get("KmsKeyId", ""), now)


def deploy(machine, template):
    """docs/deploy.md: the first deployment, and the settings of the sections."""
    account = Account(template)
    machine.follow(account, "deploy", "Deploy in ten minutes", {"--template-file template.yaml": "--template-file .aws-sam/build/template.yaml"})
    want("tables", len(tables(account)), len(KEPT) + 2)
    machine.follow(account, "deploy", "Host name")
    machine.follow(account, "deploy", "Budget")
    machine.follow(account, "deploy", "Slack and PagerDuty")
    topic = {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:svc-alarms"}
    policy = json.loads(account.client("sns").get_topic_attributes(**topic)["Attributes"]["Policy"])
    want("who may publish", [(s["Sid"], s["Resource"], ACCOUNT in str(s["Condition"])) for s in policy["Statement"]],
         [("Alarms", topic["TopicArn"], True), ("Budgets", topic["TopicArn"], True)])
    subscriptions = account.client("sns").list_subscriptions_by_topic(**topic)["Subscriptions"]
    want("subscriptions", [s["Protocol"] for s in subscriptions], ["https"])
    account = prepared(template, "prod")
    project(machine, account, "prod")
    machine.follow(account, "deploy", "Access logs")
    want("log role", account.client("apigateway").get_account()["cloudwatchRoleArn"], "arn:aws:iam::123456789012:role/apigateway-logs")
    machine.follow(account, "deploy", "Throttle")
    gateway = account.client("apigateway")
    stage = gateway.get_stage(restApiId=gateway.get_rest_apis()["items"][0]["id"], stageName="prod")
    want("throttle of a route", stage["methodSettings"]["~1api~1v1~1utilities~1pdf~1generate/POST"]["throttlingRateLimit"], 20)
    wrong("a stage that does not exist", "Invalid stage identifier", lambda: machine.follow(account, "deploy", "Throttle", {"--stage-name prod": "--stage-name prud"}))
    machine.follow(account, "deploy", "Another region", {"PROJECT": "acme"})
    only = {" AWS_DEFAULT_REGION=eu-west-1": ""}
    wrong("a region that sam does not read", "Unable to resolve a region", lambda: machine.follow(account, "deploy", "Deploy in ten minutes", only))
    want("tables of the other region", len(account.client("dynamodb", "eu-central-1").list_tables()["TableNames"]), len(KEPT) + 2)


def failed_deployment(machine, template):
    """docs/deploy.md: what the page says after a first deployment that failed."""
    account = Account(template)
    boundary = "PermissionsBoundaryArn=arn:aws:iam::aws:policy/svc-no-such-policy"
    create = f"sam build --config-env dev && sam deploy --config-env dev --parameter-overrides Stage=dev {boundary}"
    wrong("a creation that fails", "ROLLBACK_COMPLETE", lambda: machine.shell(create, machine.clone, account.environment()))
    account.create("svc-prod", Stage="prod")
    sms = account.function("Sms")
    account.client("lambda").update_function_configuration(FunctionName=sms, Description="the version that a failed update left")
    account.client("lambda").publish_version(FunctionName=sms)
    out = machine.follow(account, "deploy", "When the first deployment fails", {"FUNCTION": sms, "qualifier N": "qualifier 2"})
    want("the reason is shown", "Scope ARN does not exist" in out, True)
    want("svc-dev", account.client("cloudformation").describe_stacks(StackName="svc-dev")["Stacks"][0]["StackStatus"], "CREATE_COMPLETE")


def smoke(machine, template):
    """make smoke-aws: the whole rehearsal, without the acceptance tests and other requests."""
    account = Account(template)
    machine.shell("go run ./tools/deploy smoke eu-west-1 .", machine.clone, account.environment())
    report = next(machine.clone.glob("smoke-*.md")).read_text(encoding="utf-8")
    print("\n".join(re.findall(r"^## .*", report, re.M)))
    want("tables", tables(account), [])
    want("stacks", [s["StackName"] for s in account.client("cloudformation").describe_stacks()["Stacks"]], ["aws-sam-cli-managed-default"])


def trust(machine, template):
    """docs/supply-chain.md: the role takes the tokens of one environment of one repository, in the form of that repository."""
    new, old, other = "repo:acme@7/api@9", "repo:acme/api", "repo:acme@8/api@10"
    for prefix, tokens in (new, {new: True, old: False, other: False}), (old, {new: False, old: True, other: False}):
        account, machine.variables["SUB_CLAIM_PREFIX"] = Account(template), prefix
        machine.follow(account, "supply-chain", "Deploy from GitHub", {"OWNER/REPOSITORY": "acme/api", "ACCOUNT": ACCOUNT})
        policy = account.client("iam").get_role(RoleName="svc-prod-deploy")["Role"]["AssumeRolePolicyDocument"]
        for token, wanted in tokens.items():
            want(f"{prefix}, a token of {token}", assumes(policy, f"{token}:environment:prod"), wanted)
        want(f"{prefix}, a token of staging", assumes(policy, f"{prefix}:environment:staging"), False)
        want(f"{prefix}, a token for others than AWS", assumes(policy, f"{prefix}:environment:prod", "https://github.com/acme"), False)
    machine.variables["SUB_CLAIM_PREFIX"] = ""
    wrong("a form that GitHub does not name", "GitHub names no form", lambda: machine.follow(Account(template), "supply-chain", "Deploy from GitHub", {"OWNER/REPOSITORY": "acme/api"}))


def assumes(policy, sub, aud="sts.amazonaws.com"):
    """Evaluate a trust policy whose only operator is StringEquals, of which every key has to match (IAM User Guide, Condition)."""
    (statement,) = policy["Statement"]
    want("operators", (statement["Effect"], list(statement["Condition"])), ("Allow", ["StringEquals"]))
    token = {"token.actions.githubusercontent.com:sub": sub, "token.actions.githubusercontent.com:aud": aud}
    return all(token.get(key) == value for key, value in statement["Condition"]["StringEquals"].items())


EXPRESSIONS = {"inputs.tag": TAG, "inputs.stage": "dev", "github.token": "token", "github.repository": "owner/repository",
               "github.run_id": "1"}


def workflows(machine, template):
    """Every "run:" step of every workflow: the release that CI makes is the one that the workflow Deploy deploys."""
    account = Account(template)
    github = {"GITHUB_REF_NAME": TAG, "GITHUB_REPOSITORY": "owner/repository"}

    def value(text):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: EXPRESSIONS[match[1]], str(text))

    def steps(name, change=lambda text: text):
        workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))
        for title, job in workflow["jobs"].items():
            clone = machine.checkout(Path(tempfile.mkdtemp(dir=machine.folder)) / "work")
            for step in job["steps"]:
                if "run" in step:
                    variables = {key: value(text) for key, text in (job.get("env", {}) | step.get("env", {})).items()}
                    # GitHub's default shell: bash -e.
                    machine.shell(change(value(step["run"])), clone, account.environment() | github | variables, "-e")
                    print(f"{name}, {title}: {step['run']}")

    names = sorted(path.name for path in (ROOT / ".github/workflows").glob("*.yml"))
    for name in names:
        steps(name)
    stack = account.client("cloudformation").describe_stacks(StackName="svc-dev")["Stacks"][0]
    parameters = {p["ParameterKey"]: p["ParameterValue"] for p in stack["Parameters"]}
    want("svc-dev", (stack["StackStatus"], parameters["Stage"], parameters["ApiBurst"]), ("CREATE_COMPLETE", "dev", "40"))
    wrong("SAM without the path of samconfig.toml", "Missing option '--stack-name'", lambda: steps("deploy.yml", lambda text: text.replace('--config-file "$PWD/samconfig.toml"', "")))
    wrong("a release that was changed", "FAILED", lambda: steps("deploy.yml", lambda text: text.replace("sha256sum", "echo >> smsfunction.zip && sha256sum", 1)))


def main():
    program, svc, translated, *only = sys.argv[1:]
    os.chdir(ROOT)
    template, _ = cut(translated)
    sys.stdout.reconfigure(line_buffering=True)
    cases = [restore, repair, uninstall, upgrade, key_compromise, deploy, failed_deployment, workflows, trust, smoke]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder, program, svc)
        for case in cases:
            if not only or case.__name__ in only:
                shutil.rmtree(machine.clone / ".aws-sam", ignore_errors=True)  # of the case before
                case(machine, template)
    for page, reason, command in sorted(NOT_RUN):
        print(f"docs/{page}.md, not run: {command}: {reason}")
    if not only:
        want("blocks that no case followed", unfollowed(), [])


main()
