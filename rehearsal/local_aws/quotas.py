"""Service Quotas: of the quotas that the catalog names, a value each; moto has those of VPC alone.

Nothing here is held against them: they are what `trainctl preflight` reads. An increase is granted at once.
"""

from __future__ import annotations

import json
from typing import Any

from rehearsal.local_aws.emulators import hooks, moto_actions
from training_cluster.catalog.families import load_base

_VCPUS = 10_000.0
"""Of each kind of instance: what a large account was granted. AWS gives a new one none or few."""
_OTHERS = 5.0
"""Elastic IPs: AWS's default, and of VPCs and NAT gateways, too (moto's list of VPC's quotas)."""
_LUSTRE_GIB = 100_800.0

_granted: dict[tuple[str, str], float] = {}


def install() -> None:
    """Answer for every quota of the catalog."""
    base = load_base().quotas
    _granted.update({("ec2", each.code): _VCPUS for each in base.vcpus})
    for quota in (base.elastic_ips, base.nat_gateways, base.vpcs):
        _granted[quota.service, quota.code] = _OTHERS
    for quota in (base.fsx_persistent2_gib, base.fsx_scratch2_gib):
        _granted[quota.service, quota.code] = _LUSTRE_GIB
    actions = (get_service_quota, get_aws_default_service_quota, request_service_quota_increase)
    moto_actions.add(hooks.MOTO_QUOTA_ACTIONS, *actions)


def get_service_quota(self: Any) -> str:
    """The account's value."""
    service, code = asked = _asked(json.loads(self.body))
    return json.dumps({"Quota": {"ServiceCode": service, "QuotaCode": code, "Value": _granted[asked]}})


def get_aws_default_service_quota(self: Any) -> str:
    """The same: which value AWS began with is not kept."""
    return get_service_quota(self)


def request_service_quota_increase(self: Any) -> str:
    """Grant it."""
    given = json.loads(self.body)
    asked = _asked(given)
    value = float(given["DesiredValue"])
    if value <= _granted[asked]:
        message = f"You must provide a quota value greater than {_granted[asked]:g}."
        raise _error("IllegalArgumentException", message)
    _granted[asked] = value
    named = {"ServiceCode": asked[0], "QuotaCode": asked[1], "DesiredValue": value}
    return json.dumps({"RequestedQuota": {**named, "Status": "APPROVED"}})


def _asked(given: dict[str, Any]) -> tuple[str, str]:
    asked = given["ServiceCode"], given["QuotaCode"]
    if asked not in _granted:
        raise _error("NoSuchResourceException", "The specified resource does not exist.")
    return asked


def _error(code: str, message: str) -> Exception:
    found: Exception = hooks.find(hooks.MOTO_JSON_ERROR)(code, message)
    return found
