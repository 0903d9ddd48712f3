#!/usr/bin/env bash
#
# Builds the docs site into .cache/site/html, with strict links; SERVE=1 serves it instead and rebuilds on changes.
#
# Called by: `make site`. Safe to run again. Environment: PYTHON, an interpreter of 3.11 or newer; SERVE.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PYTHON="${PYTHON:-python3}" SERVE="${SERVE:-}"
readonly WORK=.cache/site
export PATH="$PWD/.venv/bin:$PATH" NO_MKDOCS_2_WARNING=1

make_venv() {
  local -r stamp=.venv-docs/.made-from
  local wanted
  wanted="$({ cat locks/docs.txt && "$PYTHON" -c 'import sys; print(sys.version)' && pwd; } | sha256sum)"
  if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then return; fi
  printf 'site: making .venv-docs from locks/docs.txt\n' >&2
  "$PYTHON" -m venv --clear .venv-docs
  .venv-docs/bin/python -m pip install --disable-pip-version-check --no-deps --require-hashes \
    -r locks/docs.txt >"$WORK/pip.log" 2>&1 || {
    tail -n 20 "$WORK/pip.log" >&2
    return 1
  }
  printf '%s\n' "$wanted" >"$stamp"
}

# fetch NAME VERSION SHA256 FILE: unpacks the one file of an npm package that pages load, without its dependencies.
fetch() {
  local -r archive="$1-$2.tgz"
  if [[ ! -f $WORK/$archive ]]; then
    npm pack --silent --pack-destination "$WORK" "$1@$2" >"$WORK/npm.log" 2>&1 || {
      cat "$WORK/npm.log" >&2
      return 1
    }
  fi
  printf '%s  %s\n' "$3" "$WORK/$archive" | sha256sum --check --quiet
  mkdir -p "$WORK/$1"
  tar --extract --gzip --file "$WORK/$archive" --directory "$WORK/$1" --strip-components 1 "package/$4"
}

mkdir -p "$WORK"
make_venv
fetch mermaid 11.17.2 6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd dist/mermaid.min.js
# Search also works in pages that a browser opens as files.
fetch iframe-worker 1.0.4 e8c5d12d87829c503afba01d67772ea9f4aba5b7ae57a0c98e1917711030efbb shim/index.js
if [[ $SERVE == 1 ]]; then
  exec .venv-docs/bin/mkdocs serve --strict
fi
# With --quiet MkDocs counts no warnings, and --strict passes.
.venv-docs/bin/mkdocs build --strict >"$WORK/build.log" 2>&1 || {
  grep -v '^INFO' "$WORK/build.log" >&2
  exit 1
}
if grep -rnoE '<(script|link|img|iframe)[^>]* (src|href)="?(https?:)?//[^">]*' "$WORK/html" --include='*.html' >&2; then
  printf 'site: the pages above load files from other sites; put these files into docs/assets\n' >&2
  exit 1
fi
printf 'site: %s/html/index.html\n' "$WORK" >&2
