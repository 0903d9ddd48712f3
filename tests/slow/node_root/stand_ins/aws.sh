#!/usr/bin/env bash
#
# Replaces S3 for a throw-away machine: `aws s3 cp` of one object is a copy from the folder /srv/s3. Only these
# machines use it (rehearsals and the tests of deployments use the real AWS CLI, and a local S3), since a machine
# without any network can reach no S3. It refuses all other commands.
#
#   aws s3 cp [--OPTION] s3://BUCKET/KEY FILE
set -euo pipefail

readonly BUCKETS=/srv/s3
declare -a words=()
for word in "$@"; do
  if [[ $word != --* ]]; then words+=("$word"); fi
done

if [[ ${words[*]:0:2} != "s3 cp" || ${#words[@]} != 4 || ${words[2]} != s3://* ]]; then
  printf 'aws: a throw-away machine has no AWS; this is not emulated: aws %s\n' "$*" >&2
  exit 252
fi
readonly object="${words[2]#s3://}" target="${words[3]}"
if [[ ! -e $BUCKETS/$object ]]; then
  printf 'fatal error: An error occurred (404) when calling the HeadObject operation: Key "%s" does not exist\n' \
    "${object#*/}" >&2
  exit 1
fi
# Copies to a temporary name first, as the real one.
cp "$BUCKETS/$object" "$target.part-$$"
mv -f "$target.part-$$" "$target"
