"""The rights that a request needs: those that ministack finds, and those that it misses."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.engine import path_style
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.rights import iam_resources, instances
from rehearsal.local_aws.rights.need import Need, arn

# Actions of logs on a group; all others of the table are on its streams.
_LOG_GROUP_TAGS = {"TagResource", "UntagResource", "ListTagsForResource"}
_IMAGE_BUILDER = "imagebuilder"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to the port."""

    service: str
    """Signing name of the service."""
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """Parameters of the query, and of a form in the body."""
        is_form = self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        form = self.body.decode("utf-8", errors="replace") if is_form else ""
        return parse_qs(form, keep_blank_values=True) | parse_qs(self.query, keep_blank_values=True)

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON object in the body; empty if the body is not a JSON object."""
        try:
            found = json.loads(self.body) if self.body[:1] == b"{" else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def parameter(self, name: str) -> str:
        """Return one parameter of the query or form; empty if there is none."""
        return self.parameters.get(name, [""])[0]

    def numbered(self, prefix: str) -> list[str]:
        """Return the values of `prefix1`, `prefix2` and so on."""
        return [values[0] for name, values in self.parameters.items() if name.startswith(prefix)]


def needs(request: Request) -> list[Need]:
    """Return all rights that a request needs; a request of an unknown action needs one that no role has."""
    first = _first(request)
    name = first.action.partition(":")[2]
    special = {
        "ec2": _ec2,
        "iam": _iam,
        "logs": _logs,
        "ssm": _ssm,
        "cloudformation": _cloudformation,
        "s3": _s3,
        "fsx": _fsx,
        "elasticfilesystem": _efs,
        _IMAGE_BUILDER: _image_builder,
    }.get(first.service)
    return list(special(request, first, name)) if special else [first]


def _first(request: Request) -> Need:
    headers, parameters = dict(request.headers), request.parameters
    rest = (request.method, request.path, headers, request.body, parameters)
    service = request.service
    if service not in {"fsx", "servicequotas", _IMAGE_BUILDER, "elasticfilesystem", "ec2"}:
        service = hooks.find("REQUEST_SERVICE")(request.method, request.path, headers, parameters)
    action = hooks.find("REQUEST_ACTION")(service, *rest)
    if action is None:
        target = request.headers.get("x-amz-target", "").rpartition(".")[2]
        named = target or (request.path.strip("/") if service == _IMAGE_BUILDER else "")
        return Need(action=f"{service}:{named or f'{request.method} {request.path}'}")
    resource = hooks.find("REQUEST_RESOURCE")(service, *rest, REGION, ACCOUNT)
    tags = hooks.find("REQUEST_TAGS")(service, action, request.body, parameters)
    return Need(action=action, resource=resource, context=tags)


def _ec2(request: Request, first: Need, name: str) -> Iterator[Need]:
    ids = [*request.numbered("InstanceId."), *filter(None, [request.parameter("InstanceId")])]
    if name.startswith("Describe"):  # EC2 has no resources for these
        yield replace(first, resource="*")
        return
    for each in ids:
        yield replace(first, resource=instances.instance_arn(each), context=instances.tags(each))
    if not ids:
        yield first
    if name == "RunInstances":
        if request.numbered("TagSpecification"):
            yield Need(action="ec2:CreateTags", context={"ec2:CreateAction": name})
        profile = request.parameter("IamInstanceProfile.Name") or request.parameter("IamInstanceProfile.Arn")
        for role in iam_resources.roles_of_profile(profile):
            yield Need(
                action="iam:PassRole", resource=role, context={"iam:PassedToService": "ec2.amazonaws.com"}
            )


def _iam(request: Request, first: Need, name: str) -> Iterator[Need]:
    role, profile, policy = (
        request.parameter(f"{kind}Name") for kind in ("Role", "InstanceProfile", "Policy")
    )
    source = request.parameter("PolicySourceArn")
    resource = source or first.resource
    if profile:
        resource = iam_resources.profile_arn(profile)
    elif role:
        resource = iam_resources.role_arn(role)
    elif name == "CreatePolicy":
        resource = arn("iam", f"policy{request.parameter('Path') or '/'}{policy}", region="")
    context = {**first.context, **(iam_resources.boundary(role) if role else {})}
    if attached := request.parameter("PolicyArn"):
        context["iam:PolicyARN"] = attached
    yield replace(first, resource=resource, context=context)


def _logs(request: Request, first: Need, name: str) -> Iterator[Need]:
    if name in _LOG_GROUP_TAGS or first.resource == "*":
        yield first
    else:
        yield replace(first, resource=f"{first.resource}:log-stream:{request.json.get('logStreamName', '')}")


def _ssm(request: Request, first: Need, name: str) -> Iterator[Need]:
    if name != "SendCommand":
        yield first if name.endswith(("Parameter", "Parameters", "ByPath")) else replace(first, resource="*")
        return
    document = str(request.json.get("DocumentName"))
    account = "" if document.startswith("AWS-") else ACCOUNT
    yield replace(first, resource=arn("ssm", f"document/{document}", account=account))
    for each in request.json.get("InstanceIds") or ():
        tags = {
            key.replace("aws:", "ssm:").replace("R", "r", 1): value
            for key, value in instances.tags(each).items()
        }
        yield replace(first, resource=instances.instance_arn(each), context=tags)


def _cloudformation(request: Request, first: Need, name: str) -> Iterator[Need]:
    yield first
    if name in {"CreateStack", "UpdateStack"}:
        if first.context:
            yield replace(first, action="cloudformation:TagResource")
        if url := request.parameter("TemplateURL"):
            key = unquote(urlsplit(path_style(url)).path).strip("/")
            yield Need(action="s3:GetObject", resource=f"arn:aws:s3:::{key}")


def _s3(request: Request, first: Need, _name: str) -> Iterator[Need]:
    yield first
    more = hooks.find("S3_CHECKS")
    for action, resource in more(
        request.method, request.path, dict(request.headers), request.body, request.parameters
    ):
        yield Need(action=action, resource=resource)


def _fsx(request: Request, first: Need, _name: str) -> Iterator[Need]:
    ids = request.json.get("FileSystemIds") or [request.json.get("FileSystemId") or "*"]
    for each in ids:
        yield replace(first, resource=arn("fsx", f"file-system/{each}"))


def _efs(_request: Request, first: Need, _name: str) -> Iterator[Need]:
    every = arn("elasticfilesystem", "file-system/*")
    yield replace(first, resource=every) if first.resource == "*" else first


def _image_builder(request: Request, first: Need, _name: str) -> Iterator[Need]:
    named = [value for key, value in request.json.items() if key.endswith("Arn") and isinstance(value, str)]
    yield replace(first, resource=named[0] if named else "*")
