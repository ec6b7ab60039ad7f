"""An AWS account on this machine: moto, an emulator that this project did not write, and what moto lacks or forgives.

Each function that replaces one of moto's names its source. The shapes of what moto lacks are botocore's: moto's own
serializer writes the responses after the service models, and the AWS CLI and the SDKs validate each request by them.

What the account does not show. moto runs no transform, no Rules and no AllowedPattern, and reports success for types that it
does not know: these are cut out first, with what refers to them. An alias is replaced by its function, and made afterwards.
An update of the stack changes parameters, versions, aliases and the price of an SMS alone. "make smoke-aws" is there for
all of that.
"""

import collections
import contextlib
import copy
import datetime
import http.server
import io
import json
import logging
import os
import re
import sys
import threading
import urllib.parse
import urllib.request
import zipfile

os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"  # AWS's own, before moto is read

import awscli.clidriver  # noqa: E402
import boto3
import botocore.config
import moto.server  # noqa: F401  before the others, which need it
import yaml
from moto.apigateway.exceptions import StageNotFoundException
from moto.apigateway.models import APIGatewayBackend, apigateway_backends
from moto.awslambda import urls as lambda_urls
from moto.awslambda.models import LambdaBackend, lambda_backends
from moto.awslambda.responses import LambdaResponse
from moto.cloudformation import models as formation
from moto.cloudformation.responses import CloudFormationResponse
from moto.codedeploy.models import codedeploy_backends  # noqa: F401  for tools/pages.py
from moto.codedeploy.responses import CodeDeployResponse
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.s3.models import s3_backends

ACCOUNT = "123456789012"
REGION = "eu-west-1"
KEYS = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
ONCE = botocore.config.Config(retries={"max_attempts": 0}, read_timeout=300)
# What moto 5.2.5 does not know. moto knows a deployment of an API, but reads no Body of an API, and refuses to deploy the
# API, which has no methods then.
UNKNOWN = {
    "AWS::ApiGateway::Deployment",
    "AWS::Budgets::Budget",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::CodeDeploy::Application",
    "AWS::CodeDeploy::DeploymentGroup",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Scheduler::Schedule",
    "AWS::WAFv2::WebACL",
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
    """Return the translated template with what moto supports, and the types that are left out."""
    with open(path, encoding="utf-8") as file:
        template = yaml.safe_load(file)
    text = json.dumps(template)
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Alias":
            function = resource["Properties"]["FunctionName"]["Ref"]
            text = text.replace(json.dumps({"Ref": name}), json.dumps({"Fn::GetAtt": [function, "Arn"]}))
            text = text.replace("${%s}" % name, "${%s.Arn}" % function)
            text = text.replace('"DependsOn": "%s"' % name, '"DependsOn": "%s"' % function)
    # A creation that succeeded keeps such a table, and moto has no other ("DeletionPolicy attribute", CloudFormation).
    template = json.loads(text.replace('"RetainExceptOnCreate"', '"Retain"'))
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


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, want {wanted}")
    print(f"{what}: {got}")


class Account:
    """The account of this run. An Account empties what an earlier one of the same process left."""

    server = gateway = None

    def __init__(self, template):
        cls = type(self)
        if cls.server is None:
            logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
            cls.server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
            cls.server.start()
            cls.gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
            threading.Thread(target=cls.gateway.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % cls.server.get_host_and_port()[1]
        Gateway.reset(self.url)
        os.environ.update(self.environment())  # of the AWS CLI
        base = "http://127.0.0.1:%d/${AWS::Region}/${Api}/${Stage}/api/v1" % cls.gateway.server_address[1]
        self.template = copy.deepcopy(template)
        self.template["Outputs"]["BaseUrl"] = {"Value": {"Fn::Sub": base}}
        Stack.template = json.dumps(self.template)
        s3 = self.client("s3")
        s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket="bucket", Key="value", Body=EMPTY_ZIP)

    def client(self, service, region=REGION):
        return boto3.client(service, region_name=region, endpoint_url=self.url, config=ONCE, **KEYS)

    def environment(self):
        """Return the variables with which a program uses this account."""
        cli = "http://127.0.0.1:%d/cli" % self.gateway.server_address[1]
        return {"CLI": cli, "AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION} | {k.upper(): v for k, v in KEYS.items()}

    def create(self, stack, template=None, **parameters):
        """Create a stack without SAM."""
        self.client("s3").put_object(Bucket="bucket", Key="template.json", Body=json.dumps(template or self.template).encode())
        self.client("cloudformation").create_stack(
            StackName=stack,
            TemplateURL="https://bucket.s3.amazonaws.com/template.json",
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )

    def function(self, kind, stack=""):
        """Return the name of a function of the stack."""
        names = [f["FunctionName"] for f in self.client("lambda").list_functions()["Functions"]]
        return next(name for name in names if f"{stack}-{kind}Function" in name)


EMPTY_ZIP = b"PK\x05\x06" + bytes(18)


class Gateway(http.server.BaseHTTPRequestHandler):
    """The stage's API as svc calls it: 429 while the stage's throttle is 0, 401 for a key that no project has."""

    @staticmethod
    def reset(url):
        urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset", method="POST")).read()
        RESTORED.clear()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/cli/"):
            status, body = 200, str(command_line(body, self.path.removeprefix("/cli"))).encode()
        else:
            status, body = self.balance(), b'{"error": {"code": "none"}}'
        self.send_response(status)
        self.send_header("X-SVC-Request-ID", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def balance(self):
        _, region, api, stage, *_ = self.path.split("/")
        settings = apigateway_backends[ACCOUNT][region].apis[api].stages[stage].method_settings
        table = dynamodb_backends[ACCOUNT][region].tables[f"svc-{stage}-projects"]
        items = str([item.to_json() for item in table.all_items()])
        status = 200 if self.headers["X-API-KEY"] in items else 401
        return 429 if float(settings["*/*"]["throttlingRateLimit"]) == 0 else status

    def log_message(self, *_):
        """Keep the output of the run free of requests."""


COMMAND = threading.Lock()


def command_line(arguments, folder):
    """Run the AWS CLI in this process, which saves its start, and write its output into a folder. Return its exit code."""
    directory, *arguments, _ = arguments.decode().split("\0")
    with COMMAND, open(folder + "/out", "w") as out, open(folder + "/err", "w") as err:
        os.chdir(directory)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                return awscli.clidriver.create_clidriver().main(arguments)
            except SystemExit as end:
                return end.code


# --- API Gateway, Lambda, CodeDeploy


def update_stage(self, function_id, stage_name, patch_operations, was=APIGatewayBackend.update_stage):
    """moto creates a stage that does not exist."""
    if stage_name not in self.get_rest_api(function_id).stages:
        raise StageNotFoundException()
    return was(self, function_id, stage_name, patch_operations)


def create_deployment(self, function_id, name, description="", stage_variables=None):
    """moto refuses an API without methods, as UNKNOWN describes, and a deployment empties the settings of a stage that exists."""
    api = self.get_rest_api(function_id)
    stage = api.stages.get(name)
    deployment = api.create_deployment(name, description, stage_variables)
    if stage:
        stage.deployment_id, api.stages[name] = deployment.id, stage
    return deployment


def get_account_settings(_):
    """https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html"""
    return ActionResult({"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000, "TotalCodeSize": 80530636800}, "AccountUsage": {"TotalCodeSize": 0}})


def stop_deployment(self):
    """https://docs.aws.amazon.com/codedeploy/latest/APIReference/API_StopDeployment.html"""
    self.codedeploy_backend.get_deployment(self._get_param("deploymentId")).status = "Stopped"
    return ActionResult({"status": "Succeeded"})


def delete_function(self, function_name, qualifier=None, was=LambdaBackend.delete_function):
    """https://docs.aws.amazon.com/lambda/latest/api/API_DeleteFunction.html, Qualifier: no version that an alias references."""
    if qualifier in [alias.function_version for alias in self.list_aliases(function_name)]:
        raise JsonRESTError("ResourceConflictException", f"An alias references version {qualifier}.")
    was(self, function_name, qualifier)


APIGatewayBackend.update_stage = update_stage
LambdaBackend.delete_function = delete_function
APIGatewayBackend.create_deployment = create_deployment
LambdaResponse.get_account_settings = get_account_settings
lambda_urls.url_paths["{0}/2016-08-19/account-settings/?$"] = LambdaResponse.dispatch
CodeDeployResponse.stop_deployment = stop_deployment

# --- DynamoDB

# Calls that a restored table still refuses, by name and operation.
RESTORED = {}


def restored(name, was):
    """A restored table is CREATING, later has no continuous backups for minutes ("Restore a table", DynamoDB)."""
    RESTORED[name] = {"describe": 1, "recover": 1}
    return was


def refuses(name, what):
    left = RESTORED.get(name, {}).get(what, 0)
    if left:
        RESTORED[name][what] = left - 1
    return left > 0


def describe(self, base_key="TableDescription", was=Table.describe):
    out = was(self, base_key)
    if refuses(self.name, "describe"):
        out[base_key]["TableStatus"] = "CREATING"
    return out


class Unavailable(JsonRESTError):
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateContinuousBackups.html, Errors"""

    def __init__(self, name, error="ContinuousBackupsUnavailableException"):
        super().__init__(f"com.amazonaws.dynamodb.v20120810#{error}", f"Backups are not available for table: {name}")


def update_continuous_backups(self, table_name, point_in_time_spec, was=DynamoDBBackend.update_continuous_backups):
    if refuses(table_name, "recover"):
        raise Unavailable(table_name)
    return was(self, table_name, point_in_time_spec)


def restore_to_point(self, target_table_name, source_table_name, was=DynamoDBBackend.restore_table_to_point_in_time):
    """moto restores a table without point-in-time recovery, and loses its billing mode."""
    source = self.get_table(source_table_name)
    if source.continuous_backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] != "ENABLED":
        raise Unavailable(source_table_name, "PointInTimeRecoveryUnavailableException")
    return restored(target_table_name, was(self, target_table_name, source_table_name))


def restore_from_backup(self, target_table_name, backup_arn, was=DynamoDBBackend.restore_table_from_backup):
    return restored(target_table_name, was(self, target_table_name, backup_arn))


def create_table(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
    """moto forgets recovery and time to live of a template, and knows no import."""
    backend, properties = dynamodb_backends[account_id][region_name], cloudformation_json["Properties"]
    if resource_name in Stack.imported:
        return backend.tables[resource_name]
    table = cls.moto_create(resource_name, cloudformation_json, account_id, region_name, **kwargs)
    if properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
        backend.update_continuous_backups(resource_name, {"PointInTimeRecoveryEnabled": True})
    if "TimeToLiveSpecification" in properties:
        table.ttl = {"TimeToLiveStatus": "ENABLED", "AttributeName": properties["TimeToLiveSpecification"]["AttributeName"]}
    return table


Table.describe = describe
Table.moto_create = Table.create_from_cloudformation_json
Table.create_from_cloudformation_json = classmethod(create_table)
DynamoDBBackend.update_continuous_backups = update_continuous_backups
DynamoDBBackend.restore_table_to_point_in_time = restore_to_point
DynamoDBBackend.restore_table_from_backup = restore_from_backup

# --- CloudFormation


class Stack:
    """What the replaced functions of CloudFormation share."""

    template = ""  # translated and cut
    sent = {}  # the template that was uploaded last
    imported = set()  # the names of tables that the change set in work imports


class Loader(yaml.SafeLoader):
    """Reads the short forms of intrinsic functions as mappings."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: {suffix: node.value})


def uploaded(self, url, was=CloudFormationResponse._get_stack_from_s3_url):
    """CloudFormation translates a template with the transform. All that sam deploy names has to be in S3.

    https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html: the code of a function begins with "bootstrap".
    """
    at = urllib.parse.urlparse(url)
    if at.netloc.startswith(("s3.", "127.")):  # sam deploy names the bucket in the path, and moto reads it from the host
        bucket, _, key = at.path[1:].partition("/")
        url = f"https://{bucket}.s3.amazonaws.com/{key}"
    text = was(self, url)
    Stack.sent = sent = yaml.load(text, Loader)
    if "Transform" not in sent:
        return text
    for name, resource in sent["Resources"].items():
        code = resource.get("Properties", {}).get("CodeUri") or resource.get("Properties", {}).get("ContentUri")
        if resource["Type"] in ("AWS::Serverless::Function", "AWS::Serverless::LayerVersion") and not str(code).startswith("s3://"):
            raise formation.ValidationError(message=f"{name}: {code} is not in S3")
        if resource["Type"] == "AWS::Serverless::Function":
            bucket, _, key = code.removeprefix("s3://").partition("/")
            if "bootstrap" not in zipfile.ZipFile(io.BytesIO(s3_backends[ACCOUNT]["aws"].get_object(bucket, key).value)).namelist():
                raise formation.ValidationError(message=f"{name}: {code} has no bootstrap")
    return Stack.template


def create_change_set(self, was=CloudFormationResponse.create_change_set):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html: literal names.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Parameter.html: UsePreviousValue or a value.
    """
    for parameter in self._get_param("Parameters", []):
        if parameter.get("UsePreviousValue") and "ParameterValue" in parameter:
            raise formation.ValidationError(message=f"{parameter['ParameterKey']}: a value, and UsePreviousValue")
    out = was(self)
    change_set = self.cloudformation_backend.change_sets[out._result["Id"]]
    change_set.imported = set()
    if self._get_bool_param("ImportExistingResources", False):
        for change in change_set.changes:
            name = Stack.sent["Resources"].get(change.logical_resource_id, {}).get("Properties", {}).get("TableName")
            if name in dynamodb_backends[ACCOUNT][self.region].tables if isinstance(name, str) else False:
                change.action = "Import"
                change_set.imported.add(name)
    return out


def event(stack, resource, kind, status, reason=None):
    stack.events.append(
        formation.Event(
            stack_id=stack.stack_id, stack_name=stack.name, logical_resource_id=resource, physical_resource_id="", resource_type=kind,
            resource_status=status, resource_status_reason=reason, resource_properties=None,
        )
    )  # fmt: skip


def execute_change_set(self, change_set_name, stack_name=None, was=formation.CloudFormationBackend.execute_change_set):
    """A role with a boundary that does not exist fails, and the stack rolls back. An update is recorded, not executed.

    moto replaces UsePreviousValue by the stack's value. A parameter that a change set lacks gets its default (API_Parameter).
    """
    change_set = self.describe_change_set(change_set_name)
    stack, kind = self.stacks[change_set.stack_id], change_set.change_set_type
    if change_set.parameters.get("PermissionsBoundaryArn", "").endswith("/svc-no-such-policy"):
        status = {"CREATE": "ROLLBACK", "UPDATE": "UPDATE_ROLLBACK"}[kind]
        event(stack, "SmsFunctionRole", "AWS::IAM::Role", f"{kind}_FAILED", "Scope ARN does not exist or is not attachable.")
        stack.status = f"{status}_COMPLETE"
        stack._add_stack_event(f"{status}_IN_PROGRESS")
        stack._add_stack_event(stack.status)
    elif kind == "CREATE" or stack.name == "aws-sam-cli-managed-default":
        Stack.imported = change_set.imported
        try:
            was(self, change_set_name, stack_name)
        finally:
            Stack.imported = set()
        stack.template_dict = change_set.template_dict
        stack.output_map = stack._create_output_map()  # moto's are those of the empty stack before
        complete(stack, self.region_name)
    else:
        stack._add_stack_event("UPDATE_IN_PROGRESS")
        defaults = {name: parameter.get("Default") for name, parameter in change_set.template_dict["Parameters"].items()}
        stack.resource_map.resolved_parameters = defaults | change_set.parameters
        backend = lambda_backends[ACCOUNT][self.region_name]
        for name in [function.function_name for function in of(stack, "AWS::Lambda::Function")]:
            function = backend.get_function(name)
            if "PRICE_SMS" in function.environment_vars:
                function.environment_vars = function.environment_vars | {"PRICE_SMS": str(stack.stack_parameters["PriceSms"])}
            function.code_or_config_updated = True  # every value is part of the versions' names (template.yaml, Globals)
            backend.update_alias("live", name, str(backend.publish_version(name).version), None, None)
        stack.status = "UPDATE_COMPLETE"
        stack._add_stack_event("UPDATE_COMPLETE")


def of(stack, kind):
    for name, resource in stack.resource_map._resource_json_map.items():
        if resource["Type"] == kind:
            yield stack.resource_map._parsed_resources[name]


def complete(stack, region):
    """Make what the cut template lacks: the stage of the API with its throttle, and the alias of each function."""
    parameters = stack.resource_map.resolved_parameters
    for api in of(stack, "AWS::ApiGateway::RestApi"):
        backend = apigateway_backends[ACCOUNT][region]
        backend.create_deployment(api.id, name=parameters["Stage"])
        throttle = {"rateLimit": "ApiRequestsPerSecond", "burstLimit": "ApiBurst"}
        operations = [{"op": "replace", "path": f"/*/*/throttling/{key}", "value": str(parameters[value])} for key, value in throttle.items()]
        backend.update_stage(api.id, parameters["Stage"], operations)
    for function in of(stack, "AWS::Lambda::Function"):
        backend = lambda_backends[ACCOUNT][region]
        backend.create_alias("live", function.function_name, "1", "", {})


def create_stack(self, *args, was=formation.CloudFormationBackend.create_stack, **kwargs):
    stack = was(self, *args, **kwargs)
    complete(stack, self.region_name)
    return stack


def detect_stack_drift(self):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DetectStackDrift.html"""
    self.cloudformation_backend.get_stack(self._get_param("StackName"))
    return ActionResult({"StackDriftDetectionId": "b78ac9b0-dec1-11e7-a451-503a3example"})


def describe_stack_resource(self):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResource.html; moto finds no function."""
    stack, logical = self.cloudformation_backend.get_stack(self._get_param("StackName")), self._get_param("LogicalResourceId")
    detail = {"LogicalResourceId": logical, "ResourceType": stack.resource_map._resource_json_map[logical]["Type"]}
    detail |= {"PhysicalResourceId": stack.resource_map._parsed_resources[logical].physical_resource_id, "ResourceStatus": stack.status}
    return ActionResult({"StackResourceDetail": detail | {"LastUpdatedTimestamp": datetime.datetime.now(datetime.UTC)}})


CloudFormationResponse._get_stack_from_s3_url = uploaded
CloudFormationResponse.describe_stack_resource = describe_stack_resource
CloudFormationResponse.create_change_set = create_change_set
CloudFormationResponse.detect_stack_drift = detect_stack_drift
formation.CloudFormationBackend.execute_change_set = execute_change_set
formation.CloudFormationBackend.create_stack = create_stack
