#!/usr/bin/env bash
#
# Downloads the files that steps install: complete and verified, or not at all. A function that fails prints the
# reason as the last line of stderr and returns 1.
#
# Sourced by: install steps, with `# Reads: bootstrap/lib/download.sh` in their header.

# download URL SHA256 FILE: skips a file that has this checksum; a killed download leaves FILE.part, no FILE.
download() {
  local -r url="$1" sha256="$2" file="$3"
  if [[ -z $sha256 ]]; then
    printf 'no SHA-256 of %s is known: add it to cluster_configs/versions.yaml from its publisher\n' "$url" >&2
    return 1
  fi
  if [[ -f $file ]] && has_sum "$file" "$sha256"; then return; fi
  mkdir -p "$(dirname "$file")"
  if ! curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20 \
    --output "$file.part" "$url"; then
    printf 'could not fetch %s: has this machine access to it?\n' "$url" >&2
    return 1
  fi
  if ! has_sum "$file.part" "$sha256"; then
    printf '%s is not the expected file: its SHA-256 is not %s\n' "$url" "$sha256" >&2
    rm -f "$file.part"
    return 1
  fi
  mv -f "$file.part" "$file"
}

# has_sum FILE SHA256: true if the file has this checksum.
has_sum() { [[ $(sha256sum <"$1") == "$2 "* ]]; }

# checkout URL COMMIT FOLDER: fetches a repository's files at one commit, whose id is a checksum of all of them.
checkout() {
  local -r url="$1" commit="$2" folder="$3"
  local said
  if [[ -d $folder && $(git -C "$folder" rev-parse HEAD 2>/dev/null) == "$commit" ]]; then return; fi
  rm -rf "$folder" "$folder.part"
  mkdir -p "$folder.part"
  if ! said="$({ git -C "$folder.part" init --quiet &&
    git -C "$folder.part" fetch --quiet --depth 1 "$url" "$commit" &&
    git -C "$folder.part" checkout --quiet FETCH_HEAD; } 2>&1)"; then
    printf '%s\n' "$said" >&2
    printf 'could not fetch commit %s of %s: has this machine access to it?\n' "$commit" "$url" >&2
    return 1
  fi
  if [[ $(git -C "$folder.part" rev-parse HEAD) != "$commit" ]]; then
    printf '%s gave another commit than %s\n' "$url" "$commit" >&2
    return 1
  fi
  mv -T "$folder.part" "$folder"
}

# unpack_wheel NAME VERSION SHA256 FOLDER: fetches the files of a Python wheel by pip, with this machine's index.
unpack_wheel() {
  local -r name="$1" version="$2" sha256="$3" folder="$4"
  rm -rf "$folder.part"
  mkdir -p "$folder.part"
  printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "${sha256:-none}" >"$folder.part/wanted.txt"
  if ! { python3 -I -m venv "$folder.part/venv" &&
    "$folder.part/venv/bin/python" -I -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes --dest "$folder.part" --requirement "$folder.part/wanted.txt" &&
    python3 -I -m zipfile -e "$folder.part"/*.whl "$folder.part/files"; } >&2; then
    printf 'could not fetch the wheel %s %s with the SHA-256 %s: see the lines above\n' "$name" "$version" "$sha256" >&2
    return 1
  fi
  rm -rf "$folder"
  mv -T "$folder.part/files" "$folder"
  rm -rf "$folder.part"
}

# at_least VERSION FLOOR: true if a version is no older than another.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort --version-sort | head -n 1) == "$2" ]]; }
