"""A node whose users are a directory's: a mount namespace with a copy of /etc, in which sssd runs."""

import subprocess
from pathlib import Path

from training_cluster.directory.file import Directory

# What ParallelCluster's cookbook writes in addition to the keys of DirectoryService (recipe directory_service
# and its template of sssd.conf, read 2026-11-24; AdditionalSssdConfigs win over all).
_DEFAULTS = {
    "id_provider": "ldap",
    "ldap_schema": "AD",
    "cache_credentials": "True",
    "default_shell": "/bin/bash",
    "fallback_homedir": "/home/%u",
    "ldap_id_mapping": "True",
    "ldap_referrals": "False",
    "use_fully_qualified_names": "False",
}
_OTHER_SECTIONS = """
[domain/local]
id_provider = files
enumerate = True

[sssd]
config_file_version = 2
services = nss, pam, ssh
domains = default, local
full_name_format = %1$s

[nss]
filter_users = nobody,root
filter_groups = nobody,root

[pam]
offline_credentials_expiration = 7
"""
# Arguments: the node's folder, and the script. When this process 1 of its namespace ends, all others end. The
# cookbook enables mkhomedir with the same command.
_ENTER = """\
set -euo pipefail
cd "$1"
mkdir -p etc sss log home fsx
cp -a /etc/. etc
cp -a /var/lib/sss/. sss
rm -rf sss/db/* sss/mc/* sss/pipes/{nss,pam}
mount --bind etc /etc
mount --bind sss /var/lib/sss
mount --bind log /var/log/sssd
mount --bind home /home
mount --bind fsx /mnt
mount -t tmpfs -o mode=755 tmpfs /run
install -m 600 sssd.conf /etc/sssd/sssd.conf
sed -i -E '/^(passwd|group|shadow):/{s/ sss//; s/$/ sss/}' /etc/nsswitch.conf
DEBIAN_FRONTEND=noninteractive pam-auth-update --enable mkhomedir
sssd -i >sssd.out 2>&1 &
for _ in {1..100}; do
  if [[ -S /var/lib/sss/pipes/nss && -S /var/lib/sss/pipes/pam ]]; then break; fi
  sleep 0.1
done
bash -c "$2"
"""


def sssd_conf(directory: Directory, *, password: str) -> str:
    """Render /etc/sssd/sssd.conf of a head node, as ParallelCluster's cookbook writes it."""
    domain = {
        **_DEFAULTS,
        "ldap_uri": ",".join(directory.addresses()),
        "ldap_search_base": directory.search_base,
        "ldap_default_bind_dn": directory.DomainReadOnlyUser,
        "ldap_default_authtok": password,
        "ldap_tls_reqcert": directory.LdapTlsReqCert,
    }
    if directory.LdapTlsCaCert:
        domain["ldap_tls_cacert"] = directory.LdapTlsCaCert
    if directory.LdapAccessFilter:
        domain |= {"access_provider": "ldap", "ldap_access_filter": directory.LdapAccessFilter}
    domain |= directory.rendered()["AdditionalSssdConfigs"]
    lines = (f"{key} = {value}\n" for key, value in sorted(domain.items()))
    return "[domain/default]\n" + "".join(lines) + _OTHER_SECTIONS


def run_on_node(
    folder: Path, script: str, *, directory: Directory, password: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of bash as root on a new node of the directory, where /mnt is the shared storage.

    Args:
        folder: is made, and keeps the node's files.
        script: its words and exit code are the result's.
        directory: of the cluster.
        password: that of the secret.
    """
    folder.mkdir(parents=True)
    (folder / "sssd.conf").write_text(sssd_conf(directory, password=password))
    namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    return subprocess.run(
        ["unshare", *namespaces, "bash", "-c", _ENTER, "node", folder, script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
