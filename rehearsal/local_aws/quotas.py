"""Service Quotas: values of the quotas in the catalog; moto has only VPC's.

They limit nothing here, but `trainctl preflight` reads them. An increase is granted at once.
"""

import json
from typing import Any

from rehearsal.local_aws.emulators import moto_actions
from training_cluster.catalog.families import load_base

_VCPUS = 10_000.0
"""Quota of each kind of instance, as granted to a large account. A new account gets few or none from AWS."""
_OTHERS = 5.0
"""AWS's default for Elastic IPs, and for VPCs and NAT gateways (moto's list of VPC's quotas)."""
_LUSTRE_GIB = 100_800.0
_INTERFACES, _GP3_TIB = 5000.0, 50.0
"""AWS's defaults."""

_granted: dict[tuple[str, str], float] = {}


def install() -> None:
    """Answer for every quota of the catalog."""
    base = load_base().quotas
    _granted.update({("ec2", each.code): _VCPUS for each in base.vcpus})
    for quota in (base.elastic_ips, base.nat_gateways, base.vpcs):
        _granted[quota.service, quota.code] = _OTHERS
    _granted[base.network_interfaces.service, base.network_interfaces.code] = _INTERFACES
    _granted[base.gp3_tib.service, base.gp3_tib.code] = _GP3_TIB
    for quota in (base.fsx_persistent2_gib, base.fsx_scratch2_gib):
        _granted[quota.service, quota.code] = _LUSTRE_GIB
    actions = (get_service_quota, get_aws_default_service_quota, request_service_quota_increase)
    moto_actions.add("servicequotas", *actions)


def get_service_quota(self: Any) -> str:
    """Answer GetServiceQuota with the account's value."""
    service, code = asked = _asked(json.loads(self.body))
    return json.dumps({"Quota": {"ServiceCode": service, "QuotaCode": code, "Value": _granted[asked]}})


def get_aws_default_service_quota(self: Any) -> str:
    """Answer GetAWSDefaultServiceQuota with the account's value, since no default is stored."""
    return get_service_quota(self)


def request_service_quota_increase(self: Any) -> str:
    """Grant an increase of a quota."""
    given = json.loads(self.body)
    asked = _asked(given)
    value = float(given["DesiredValue"])
    if value <= _granted[asked]:
        message = f"You must provide a quota value greater than {_granted[asked]:g}."
        raise moto_actions.json_error("IllegalArgumentException", message)
    _granted[asked] = value
    named = {"ServiceCode": asked[0], "QuotaCode": asked[1], "DesiredValue": value}
    return json.dumps({"RequestedQuota": {**named, "Status": "APPROVED"}})


def _asked(given: dict[str, Any]) -> tuple[str, str]:
    asked = given["ServiceCode"], given["QuotaCode"]
    if asked not in _granted:
        raise moto_actions.json_error("NoSuchResourceException", "The specified resource does not exist.")
    return asked
