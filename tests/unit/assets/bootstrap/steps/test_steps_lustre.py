"""Step 61 on a machine whose Lustre and LNet are stubs with a memory, against the commands of AWS's pages."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.unit.assets.bootstrap.step_machine import Machine, fails, succeeds

AWS = yaml.safe_load(Path(__file__).with_name("lustre.yaml").read_text())
GIB = 2**20


def lustre_node(node: Machine, *, cpus: int, gib: int, devices: int = 0, interfaces: int = 0) -> Machine:
    """Return a node that has mounted Lustre, with EFA devices and the interfaces of its queue."""
    node.environment |= {"MOMENT": "start", "PARTITION": "gpu"}
    (node.etc / "partitions/gpu.env").write_text(f"export LUSTRE_EFA_INTERFACES='{interfaces}'\n")
    node.write("proc/meminfo", f"MemTotal:       {gib * GIB} kB\n")
    (node.root / "drivers/efa").mkdir(parents=True)
    for number in range(devices):
        device = node.root / f"sys/class/infiniband/rdmap{number:03}/device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(node.root / "drivers/efa")
    node.write("mounted", "")
    node.write("set", "")
    for name, script in {
        "nproc": f"[[ $1 == --all ]] && echo {cpus} || echo 1",
        "ip": "echo default via 10.0.0.1 dev enp71s0 proto dhcp metric 100",
        "findmnt": "[[ -e $ROOT/mounted ]] && echo /fsx",
        "mountpoint": "[[ -e $ROOT/mounted ]]",
        "umount": 'rm "$ROOT/mounted"',
        "mount": 'touch "$ROOT/mounted"',
        "sleep": "",
        "systemctl": "",
        "modprobe": "",
        "lustre_rmmod": 'rm -f "$ROOT/nids"',
        "lctl": 'if [[ $1 == set_param ]]; then echo "$2" >>"$ROOT/set"; exit; fi\n'
        """awk -F= -v name="$3" '$1 == name {print $2}' "$ROOT/set\"""",
        "lnetctl": 'if [[ "$1 $2 $4" == "net add efa" ]]; then echo "- nid: $6@efa" >>"$ROOT/nids"; fi\n'
        '[[ "$1 $2" != "net show" ]] || cat "$ROOT/nids"',
    }.items():
        node.program(name, script)
    return node


def commands(text: str, **values: str) -> list[str]:
    """Return the commands of a page's text as the stubs write them down."""
    for name, value in values.items():
        text = text.replace(name, value)
    lines = re.findall(r"^ *(?:sudo )(?:/sbin/)?([^;\n]*?)(?: [12]?> .*)?$", text, re.MULTILINE)
    return [line.replace('"', "") for line in lines]


def asked(node: Machine) -> list[str]:
    """Return the calls that change something, those at the same time in the order of their words."""
    quiet = ("nproc", "ip ", "findmnt", "mountpoint", "lctl get_param", "lnetctl net show")
    return [call.strip() for call in node.calls() if not call.startswith(quiet)]


@pytest.mark.parametrize(("cpus", "gib"), [(192, 2048), (64, 62), (96, 62), (16, 128)])
def test_parameters_and_options_are_those_of_aws(node: Machine, cpus: int, gib: int) -> None:
    tips = AWS["performance"]
    wanted = commands(tips["directory listing"])
    if cpus > 64:
        wanted = commands(tips["more than 64 vCPU cores, after the client is mounted"]) + wanted
    if gib > 64:
        text = tips["memory of more than 64 GiB"]
        wanted = commands(text, **{"<100 * number_of_CPUs>": str(100 * cpus)}) + wanted
    lustre_node(node, cpus=cpus, gib=gib).does("61")
    assert asked(node) == ["systemctl daemon-reload", *wanted], "nothing is mounted again"
    shown = [line.split() for line in check(node)]
    assert len(shown) == len(wanted)
    assert all(value == seen for _, value, seen in shown), shown


def test_an_image_has_the_options_of_aws(node: Machine) -> None:
    lustre_node(node, cpus=192, gib=62).does("39")
    conf = node.text("etc/modprobe.d/training-cluster-lustre.conf").splitlines()
    assert conf == re.findall(r'echo "(.+)"', AWS["performance"]["more than 64 vCPU cores"])
    node.write("sys/module/ptlrpc/parameters/ptlrpcd_per_cpt_max", "32\n")
    assert check(node)[:2] == ["ptlrpc.ptlrpcd_per_cpt_max 32 32", "ksocklnd.credits 2560 none"]


def check(node: Machine) -> list[str]:
    """Return what `trainctl verify` reads of the node."""
    (path,) = (node.bundle / "bootstrap" / "steps").glob("61-*.sh")
    done = subprocess.run(["bash", path, "check"], env=node.environment, capture_output=True, text=True)
    succeeds(done)
    return done.stdout.splitlines()


def test_efa_is_connected_as_aws_does(node: Machine) -> None:
    """On a p5: the modules are loaded again below the mount, and every fourth device is added."""
    lustre_node(node, cpus=192, gib=2048, devices=32, interfaces=8).does("61")
    calls = asked(node)
    wanted = commands(AWS["efa"], **{"$eth_intf": "enp71s0", "$intf": "rdmap"})
    adds = [call for call in calls if "--net efa" in call]
    assert sorted(adds) == [
        f"lnetctl net add --net efa --if rdmap{n:03} --peer-credits 32" for n in range(0, 32, 4)
    ]
    efa = calls[calls.index("modprobe lnet") : calls.index("modprobe lustre") + 1]
    one = [re.sub(r"rdmap\d+", "rdmap", call) for call in efa if call not in adds[1:]]
    assert one == wanted
    around = [call for call in calls if call.split()[0] in {"umount", "lustre_rmmod", "mount"}]
    assert around == ["umount --all --types lustre", "lustre_rmmod", "mount /fsx"]
    assert "efa_interfaces 8 8" in check(node)
    node.does("61")
    assert not [call for call in asked(node) if not call.startswith("lctl set_param")], "again"
    unit = node.text("etc/systemd/system/fsx.mount.d/training-cluster.conf")
    assert "After=training-cluster-lustre@interfaces.service\n" in unit


@pytest.mark.parametrize("broken", ["umount", "lustre_rmmod", "modprobe"])
def test_a_failed_reload_leaves_lustre_mounted(node: Machine, broken: str) -> None:
    lustre_node(node, cpus=192, gib=2048, devices=32, interfaces=8).program(broken, "exit 1")
    assert "could not be added" in node.does("61")
    assert (node.root / "mounted").exists()
    assert "lctl set_param llite.*.statahead_max=512" in asked(node)


def test_a_node_without_lustre_fails(node: Machine) -> None:
    lustre_node(node, cpus=192, gib=2048, devices=32, interfaces=8).program("mount", "exit 1")
    fails(node.run("61"), "/fsx cannot be mounted again")
    assert asked(node).count("lustre_rmmod") == 2, "the second time without interfaces"


def test_a_mount_without_fstab_stays(node: Machine) -> None:
    lustre_node(node, cpus=192, gib=2048, devices=32, interfaces=8)
    node.program("findmnt", "echo /fsx; [[ $1 == --fstab ]] || echo /mine")
    assert "not all of /fsx /mine are in fstab" in node.does("61")
    assert not [call for call in asked(node) if call.startswith(("umount", "mount"))]


def test_a_running_node_reloads_nothing(node: Machine) -> None:
    lustre_node(node, cpus=192, gib=2048, devices=32, interfaces=8).does("61", MOMENT="refresh")
    assert not [call for call in asked(node) if call.startswith(("umount", "lustre_rmmod", "mount"))]
