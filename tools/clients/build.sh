#!/bin/bash
# Builds the client package of a language into a folder: the generator's output, the retry rules and the README of
# tools/clients/LANGUAGE. The same document gives the same files. make test-clients tests the packages.
#
# Usage: tools/clients/build.sh LANGUAGE FOLDER VERSION
set -euo pipefail
mkdir -p "$2"
language=$1 folder=$(realpath "$2") version=$3
cd "$(dirname "$0")/../.."
document=$(mktemp --suffix=.yaml)
trap 'rm "$document"' EXIT
# Python and PHP would send the default of X-ENV with each call, over the environment that the client is created for.
sed "/^        default: development$/d; /^        default: 'false'$/d" openapi.yaml >"$document"
here=tools/clients/$language installed=.local/clients modules=.local/npm/node_modules
case $language in
  typescript)
    "$modules/.bin/openapi-typescript" "$document" -o "$folder/src/api.ts" >/dev/null
    cp "$here/index.ts" "$folder/src"
    sed "s/VERSION/$version/; s/FETCH/$(node -p "require('./tools/npm/package.json').devDependencies['openapi-fetch']")/" \
      "$here/package.json" >"$folder/package.json"
    ln -s "$PWD/$modules" "$folder/node_modules"
    "$modules/.bin/tsc" --strict --declaration --target es2022 --module nodenext --lib es2023,dom --rootDir "$folder/src" \
      --outDir "$folder/dist" "$folder/src/index.ts"
    rm -r "$folder/node_modules" "$folder/src"
    ;;
  python)
    PATH=$PWD/$installed/venv/bin:$PATH openapi-python-client generate --path "$document" --output-path "$folder" --overwrite \
      --config <(echo "package_version_override: $version") >/dev/null
    rm -rf "$folder/.ruff_cache" "$folder/.gitignore"
    cp "$here/retry.py" "$folder/svc_api_client"
    ;;
  php)
    java -jar "$installed"/openapi-generator-cli-*.jar generate -i "$document" -g php -o "$folder" \
      --global-property apiTests=false,modelTests=false \
      --additional-properties="invokerPackage=SvcApi,composerPackageName=svc-api/client,artifactVersion=$version,licenseName=Apache-2.0,developerOrganization=SVC API" >/dev/null
    (cd "$folder" && rm -rf .gitignore .openapi-generator .openapi-generator-ignore .php-cs-fixer.dist.php .travis.yml \
      git_push.sh phpunit.xml.dist)
    cp "$here/Retry.php" "$folder/lib"
    ;;
esac
cp "$here/README.md" LICENSE "$folder"
