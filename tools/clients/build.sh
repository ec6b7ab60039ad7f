#!/bin/bash
# Builds the client of a language into a folder, as a release has it: the generator's output, the retry rules and the
# README of tools/clients/LANGUAGE, packed as .tgz for npm, as wheel, or as a zip for Composer and Go. The same document
# gives the same bytes. make test-clients runs each README as printed.
#
# Usage: tools/clients/build.sh LANGUAGE FOLDER VERSION
set -euo pipefail
mkdir -p "$2"
language=$1 out=$(realpath "$2") version=$3
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
document=$work/openapi.yaml folder=$work/client-$language
mkdir "$folder"
# Python and PHP would send the default of X-ENV with each call, over the environment that the client is created for.
sed "/^        default: development$/d; /^        default: 'false'$/d" openapi.yaml >"$document"
here=tools/clients/$language installed=.local/clients modules=.local/npm/node_modules
case $language in
  typescript)
    mkdir "$folder/src"
    cp "$here/types.mjs" "$work"
    ln -s "$PWD/$modules" "$work/node_modules"
    node "$work/types.mjs" "$document" >"$folder/src/api.ts"
    cp "$here/index.ts" "$folder/src"
    sed "s/VERSION/$version/; s/FETCH/$(node -p "require('./tools/npm/package.json').devDependencies['openapi-fetch']")/" \
      "$here/package.json" >"$folder/package.json"
    "$modules/.bin/tsc" --strict --declaration --target es2022 --module nodenext --lib es2023,dom --rootDir "$folder/src" \
      --outDir "$folder/dist" "$folder/src/index.ts"
    rm -r "$folder/src"
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
    # An artifact of Composer names its version itself.
    sed -i "0,/\"name\":/s//\"version\": \"$version\",\n    \"name\":/" "$folder/composer.json"
    ;;
  go)
    cp "$here"/go.* "$here/retry.go" "$folder"
    go -C tools/go tool oapi-codegen -generate types,client -package svcapi -o "$folder/client.gen.go" "$document"
    ;;
esac
sed "s/VERSION/$version/g" "$here/README.md" >"$folder/README.md"
cp LICENSE "$folder"
case $language in
  typescript) npm pack --silent --pack-destination "$out" "$folder" >/dev/null ;;
  python)
    SOURCE_DATE_EPOCH=315532800 "$installed/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
      --no-build-isolation --wheel-dir "$out" "$folder"
    ;;
  *) cp -r "$folder" "$out" ;;
esac
