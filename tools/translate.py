"""Print template.yaml as CloudFormation, the way AWS expands it at deployment.

Needs neither an account nor a network: managed policies are named by ARN, never by name.
Usage: translate.py template.yaml [Parameter=Value ...] [-- Parameter=Value ...] > translated.yaml, with a document for each
set of parameters.
"""

import sys
from pathlib import Path

from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samcli.yamlhelper import yaml_parse


class NoManagedPolicies:
    """Replaces the loader that would ask IAM for the names of managed policies."""

    def load(self):
        return {}


template = Path(sys.argv[1]).read_text(encoding="utf-8")
sets = [{}]
for argument in sys.argv[2:]:
    if argument == "--":
        sets.append({})
    else:
        name, value = argument.split("=", 1)
        sets[-1][name] = value
documents = []
for parameters in sets:
    validator = SamTemplateValidator(yaml_parse(template), NoManagedPolicies(), region="eu-west-1", parameter_overrides=parameters)
    documents.append(validator.get_translated_template_if_valid())
sys.stdout.write("---\n".join(documents))
