"""Print the environment that sam local invoke would give each function, as JSON.

Resolved by SAM's own providers, the ones behind sam local, which need a container engine only to run
the function. Usage: environment.py template.yaml [Parameter=Value ...]
"""

import json
import sys

from samcli.cli.types import CfnParameterOverridesType
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.local.lambdafn.env_vars import EnvironmentVariables

template, *overrides = sys.argv[1:]
parameters = CfnParameterOverridesType().convert(tuple(overrides), None, None)
stacks, remote = SamLocalStackProvider.get_stacks(template, parameter_overrides=parameters)
if remote:
    sys.exit(f"nested stacks that are not local: {remote}")

functions = {}
for function in SamFunctionProvider(stacks, ignore_code_extraction_warnings=True).get_all():
    environment = EnvironmentVariables(
        function.name,
        function.memory,
        function.timeout,
        function.handler,
        function.logging_config,
        variables=(function.environment or {}).get("Variables", {}),
    )
    functions[function.name] = environment.resolve()
json.dump(functions, sys.stdout, indent=2, sort_keys=True)
