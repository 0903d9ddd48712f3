"""The judge of rights: ministack's evaluator over the policies of the deployed stacks' roles."""

import json
import threading
from dataclasses import dataclass
from typing import Any

from rehearsal.local_aws.address import REGION, LocalAwsAddress
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.rights import nearest
from rehearsal.local_aws.rights.need import Need
from rehearsal.local_aws.rights.sessions import role_of
from training_cluster.permissions.table import NO_ACTION

_LOCALHOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Denial:
    """One right that a role lacks."""

    need: Need
    role: str
    why: str
    """The closest statement, and the part of it that does not match."""

    def __str__(self) -> str:
        return (
            f"role {self.role} is not authorized to perform {self.need.action} on {self.need.resource}"
            f" ({self.why})"
        )


class Judge:
    """Judges calls of functions' sessions, and writes each new one and each denial to the address's files."""

    def __init__(self, address: LocalAwsAddress) -> None:
        self._denied = address.denied_calls.open("a", buffering=1, encoding="utf-8")
        self._judged = address.judged_calls.open("a", buffering=1, encoding="utf-8")
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self._enforce = hooks.find("ENFORCE")
        self._principal = hooks.find("PRINCIPAL")
        self._origin = hooks.find("REQUEST_ORIGIN")

    def denial(self, access_key: str, needs: list[Need], *, by: str) -> Denial | None:
        """Return the first right that a function's session lacks; None if it has all of them.

        Args:
            by: the call, or the resource type and operation of CloudFormation that need the rights.
        """
        role = role_of(access_key)
        if role is None:
            return None
        self._origin(_LOCALHOST, True)  # the evaluator's aws:SecureTransport; the port accepts only TLS
        if not needs:
            self._note(role, Need(action=NO_ACTION), by)
        for need in needs:
            self._note(role, need, by)
            context = dict(need.context)
            denied = self._enforce(
                access_key,
                need.action,
                need.service,
                REGION,
                resource_arn=need.resource,
                service_context=context,
            )
            if denied is not None:
                found = Denial(need=need, role=role, why=self._why(access_key, need, denied))
                self._denied.write(f"{by}: {found}\n")
                return found
        return None

    def _why(self, access_key: str, need: Need, denied: Any) -> str:
        if getattr(denied, "decision", "") == "Deny":
            source = denied.resource_policy_arn or "a policy of the role"
            return f"denied by statement {denied.matched_sid or '(without Sid)'} of {source}"
        principal = self._principal(access_key, "")
        if not hasattr(principal, "policies"):
            return str(getattr(denied, "message", denied))
        return nearest.explain(need, principal.policies, bounded=bool(principal.limits))

    def _note(self, role: str, need: Need, by: str) -> None:
        line = json.dumps(
            {
                "role": role,
                "action": need.action,
                "resource": need.resource,
                "context": dict(need.context),
                "by": by,
            },
            sort_keys=True,
        )
        with self._lock:
            if line not in self._known:
                self._known.add(line)
                self._judged.write(line + "\n")
