"""Check of settings for slurm.conf: slurmctld does not start with a key that it does not know.

ParallelCluster checks only that a setting is none of its own (slurm_settings_validator.py).
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_cluster.overrides.merge import SLURM_CONF, scripts_of, slurm_keys
from training_cluster.pcluster.schema import SCHEMA
from training_cluster.problems import did_you_mean

Config = Mapping[str, Any]

TIME, REMOVED = "TIME", "REMOVED"
"""Forms in addition to Slurm's own S_P_*: text that it reads as a time, and keys with which it ends."""
_FOLDER = "/opt/slurm/etc"


@dataclass(frozen=True, kw_only=True)
class Form:
    """The values that Slurm reads for keys of one type (src/common/parse_value.c, parse_time.c)."""

    pattern: str
    allowed: str
    most: int | None = None


def _number(bits: int, k: str = "") -> Form:
    return Form(
        pattern=rf"(?P<number>0x[0-9a-f]+|0|[1-9][0-9]*)(?P<k>{k})|infinite|unlimited",
        allowed=f"a whole number from 0 to {2**bits - 1}, or INFINITE",
        most=2**bits - 1,
    )


_TEXT = Form(
    pattern=r'"[^"#]+"|(?:[^\s#\\]|\\.)+',
    allowed="text without spaces, or in double quotes within the quotes of YAML; YAML reads a bare yes or no "
    "as true or false, so write it in quotes",
)
YES = "yes|up|true|1"
"""Words that Slurm takes for true, as a pattern (s_p_handle_boolean)."""
FORMS = {
    "STRING": _TEXT,
    "ARRAY": _TEXT,
    "BOOLEAN": Form(pattern=f"{YES}|no|down|false|0", allowed="yes, no, true, false, 1, 0"),
    "UINT16": _number(16),
    "UINT32": _number(32, "k?"),
    "UINT64": _number(64, "k?"),
    TIME: Form(
        pattern=r"-1|infinite|unlimited|\d+(:\d+){0,2}|\d+-\d*|\d+-\d+:\d+(:\d+)?",
        allowed="minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes:seconds, "
        "UNLIMITED; in quotes",
    ),
    REMOVED: Form(pattern="(?!)", allowed="none: Slurm has removed this setting, and does not start with it"),
}
_FILES = {
    "topologyplugin": {"topology/tree": "topology.conf", "topology/block": "topology.conf"},
    "jobsubmitplugins": {"job_submit/lua": "job_submit.lua"},
    "clifilterplugins": {"cli_filter/lua": "cli_filter.lua"},
    "jobcomptype": {"jobcomp/lua": "jobcomp.lua"},
    "burstbuffertype": {"burst_buffer/lua": "burst_buffer.lua"},
    "nodefeaturesplugins": {"node_features/helpers": "helpers.conf"},
    "jobcontainertype": {"job_container/tmpfs": "job_container.conf"},
    "namespacetype": {"namespace/tmpfs": "job_container.conf", "namespace/linux": "namespace.yaml"},
}
"""Plugins by setting that end slurmctld, slurmd or sbatch where their file is missing.

From Slurm 25.11: src/interfaces/topology.c, and what calls get_extra_conf_path in src/plugins/.
"""


def slurm_problems(config: Config) -> Iterator[str]:
    """Yield a sentence for each setting of a rendered config with which Slurm does not start."""
    actions = config["HeadNode"].get("CustomActions", {})
    # An existing cluster takes no OnNodeStart. OnNodeUpdated has one script of the app's, then the user's.
    brings_files = "OnNodeStart" in actions or len(scripts_of(actions.get("OnNodeUpdated"))) > 1
    for path, kind, settings, denied in _all_settings(config["Scheduling"]):
        yield from _wrong(settings, kind, path, denied)
        for key, value in settings.items() if kind == SLURM_CONF and not brings_files else ():
            yield from _unknown_plugins(key, value, path)
            for plugin, file in files_of(key, value).items():
                yield (
                    f"{path}.{key}: {plugin} does not start without {_FOLDER}/{file}\n"
                    "    type: HeadNode.CustomActions.OnNodeStart with a script that writes this file; for "
                    "an existing cluster OnNodeUpdated, one deploy earlier (docs/overrides.md)"
                )


def _all_settings(scheduling: Config) -> Iterator[tuple[str, str, Config, Collection[str]]]:
    """Yield path, kind of line, settings and ParallelCluster's refused keys, for all levels of a config."""
    level, slurm = "CustomSlurmSettings", scheduling.get("SlurmSettings", {})
    denied = json.loads(SCHEMA.read_text(encoding="utf-8"))["x-denied-slurm-settings"]
    of_cluster = denied["SlurmConf"]["Global"]
    if "Database" in slurm:
        of_cluster = of_cluster + denied["SlurmConf"]["Accounting"]
    for line in slurm.get(level, []):
        kind = line_kind(line)
        # Lines of NodeName and the like describe nodes of the user's own: ParallelCluster refuses none there.
        yield f"Scheduling.SlurmSettings.{level}", kind, line, of_cluster if kind == SLURM_CONF else ()
    for queue in scheduling["SlurmQueues"]:
        at = f"Scheduling.SlurmQueues[{queue['Name']}]"
        yield f"{at}.{level}", "PartitionName", queue.get(level, {}), denied["Queue"]["Global"]
        for each in queue["ComputeResources"]:
            path = f"{at}.ComputeResources[{each['Name']}].{level}"
            yield path, "NodeName", each.get(level, {}), denied["ComputeResource"]["Global"]


def line_kind(line: Config) -> str:
    """Return the key that begins a line, such as NodeName, or SLURM_CONF for one without such a key."""
    given = {str(key).lower() for key in line}  # ParallelCluster writes a key such as NodeName first
    return next((each for each in slurm_keys()["keys"] if each.lower() in given), SLURM_CONF)


def _wrong(settings: Config, kind: str, path: str, denied: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each key or value that Slurm does not take; case makes no difference to it."""
    forms = {key: form for form, keys in slurm_keys()["keys"][kind].items() for key in keys}
    forms |= {} if kind == SLURM_CONF else {kind: "STRING"}
    lower = {key.lower(): form for key, form in forms.items()}
    words = {key.lower(): known for key, known in slurm_keys()["words"].get(kind, {}).items()}
    where = kind if kind == SLURM_CONF else f"a line of {kind}"
    for key, value in settings.items():
        form = lower.get(str(key).lower())
        if str(key).lower() in denied:
            yield f"{path}.{key}: ParallelCluster sets it itself, and refuses it here"
        elif form is None:
            yield (
                f"{path}.{key}: Slurm {_release()} has no such key in {where}, and slurmctld does not start "
                f"with it.{did_you_mean(str(key), forms)}"
            )
        elif not _fits(value, form):
            allowed = FORMS[form].allowed
            yield f"{path}.{key}: {value} is no value for Slurm {_release()}\n    allowed: {allowed}"
        elif known := words.get(str(key).lower()):
            for word in (each for each in str(value).strip('"').split(",") if each):
                if not _is_known(word, known):
                    yield (
                        f"{path}.{key}: Slurm {_release()} has no word {word} for it, and slurmctld does not "
                        f"start with it.{did_you_mean(word, known)}\n    allowed: {', '.join(known)}"
                    )


def _is_known(word: str, known: Collection[str]) -> bool:
    """Return True for a word that Slurm compares with one of the known, some of which only begin a word."""
    if "RSS" in known:  # names of limits, with their case, also between spaces: slurm_rlimits_info.c
        return all(each.removeprefix("RLIMIT_") in known for each in word.split())
    lower = word.lower()
    return any(
        lower == each.lower() or (each[-1] in ":=" and lower.startswith(each.lower())) for each in known
    )


def _fits(value: object, form: str) -> bool:
    """Return True if Slurm reads a value, as ParallelCluster writes it into slurm.conf."""
    if isinstance(value, bool) and form != "BOOLEAN":
        return False
    found = re.fullmatch(FORMS[form].pattern, str(value), re.IGNORECASE)
    most = FORMS[form].most
    if found is None or most is None or not found["number"]:
        return found is not None
    return int(found["number"], 0) * (1024 if found["k"] else 1) <= most


def files_of(key: str, value: object) -> dict[str, str]:
    """Return the files without which the plugins in a setting do not start, by plugin."""
    given = {each.strip().lower().rpartition("/")[2] for each in str(value).split(",")}
    files = _FILES.get(str(key).lower(), {})
    return {plugin: file for plugin, file in files.items() if plugin.rpartition("/")[2] in given}


def _unknown_plugins(key: object, value: object, path: str) -> Iterator[str]:
    """Yield a sentence for each plugin in a setting that Slurm's manual does not have."""
    plugins = slurm_keys()["manual"]["plugins"][SLURM_CONF]
    for known in (plugins[name] for name in plugins if name.lower() == str(key).lower()):
        # Some types have a plugin for none.
        taken = [*known, f"{known[0].partition('/')[0]}/none"]
        # A list takes names without their type, too.
        taken += [each.rpartition("/")[2] for each in taken]
        for word in (each.strip() for each in str(value).split(",")):
            if word.lower() not in taken:
                yield (
                    f"{path}.{key}: Slurm {_release()} has no plugin {word}.{did_you_mean(word, known)}\n"
                    f"    allowed: {', '.join(known)}; one of your own with a script that installs it, "
                    "HeadNode.CustomActions.OnNodeStart"
                )


def lacking_in_rehearsal(kind: str) -> set[str]:
    """Return, in lower case, what a rehearsal's Slurm does not know: keys of a line, or words of a key."""
    lacks = slurm_keys()["rehearsal"]["lacks"].items()
    return {each.lower() for of, names in lacks if of.lower() == kind.lower() for each in names}


def _release() -> str:
    """Return Slurm's release by its tag: slurm-25-11-7-1 is of 25.11."""
    return ".".join(slurm_keys()["tag"].split("-")[1:3])
