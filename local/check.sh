#!/usr/bin/env bash
# Checks, before anything is compiled, the programs that make run needs, by name and version, and that the port of the
# gateway is free. What only PDFs need is a warning.
set -u
cd "$(dirname "$0")/.."
missing=()

# older reports whether version $1 is below version $2.
older() { [[ $1 != "$2" && $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

wanted=$(awk '$1 == "go" { print $2 }' go.mod)
if ! command -v go > /dev/null; then
  missing+=("Go $wanted or later: there is no go on the PATH")
else
  version=$(GOTOOLCHAIN=local go env GOVERSION 2> /dev/null) version=${version#go}
  # From 1.21 on, Go fetches the release that go.mod names, unless GOTOOLCHAIN forbids that.
  [[ ${GOTOOLCHAIN:-auto} == local ]] && least=$wanted || least=1.21
  if older "${version:-0}" "$least"; then missing+=("Go $wanted or later: the go on the PATH is ${version:-too old}"); fi
fi
if [[ -z ${AWS_ENDPOINT_URL_DYNAMODB:-} ]]; then # that engine runs already
  if ! command -v java > /dev/null; then
    missing+=("Java 17 or later (a JRE), which DynamoDB Local needs: there is no java on the PATH")
  else
    version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    if older "${version:-0}" 17; then
      missing+=("Java 17 or later: the java on the PATH is ${version:-of an unknown version}")
    fi
  fi
  if ! ls .local/dynamodb/*/DynamoDBLocal*.jar > /dev/null 2>&1 && ! command -v mvn > /dev/null; then
    missing+=("Maven (mvn), which fetches DynamoDB Local once")
  fi
fi
for name in "${missing[@]+"${missing[@]}"}"; do echo "Please install $name." >&2; done

port=${PORT:-8080}
if [[ ! $port =~ ^[0-9]{1,5}$ ]] || ((port > 65535)); then
  echo "PORT=$port is no port." >&2
  missing+=(port)
elif ((port > 0)) && (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
  echo "Port $port is taken: choose another one with PORT=…" >&2
  missing+=(port)
fi
if [[ -z ${CHROMIUM:-} ]]; then
  version=$(node --version 2> /dev/null) version=${version#v}
  if older "${version:-0}" 20 || ! command -v npm > /dev/null; then
    echo "PDFs need Node.js 20 or later with npm, once: the node on the PATH is ${version:-missing}." >&2
  fi
fi
exit $((${#missing[@]} > 0))
