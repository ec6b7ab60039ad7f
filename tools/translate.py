"""Print template.yaml as CloudFormation, the way AWS expands it at deployment.

Needs neither an account nor a network: managed policies are named by ARN, never by name.
Usage: translate.py template.yaml [Parameter=Value ...] > translated.yaml
"""

import sys
from pathlib import Path

from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samcli.yamlhelper import yaml_parse


class NoManagedPolicies:
    """Replaces the loader that would ask IAM for the names of managed policies."""

    def load(self):
        return {}


template = yaml_parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
parameters = dict(argument.split("=", 1) for argument in sys.argv[2:])
validator = SamTemplateValidator(template, NoManagedPolicies(), region="eu-west-1", parameter_overrides=parameters)
sys.stdout.write(validator.get_translated_template_if_valid())
