"""Explains errors of AWS in one sentence, with the command that fixes them."""

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from ops.account.session import region_turned_off

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "AuthFailure"}
_EXPIRED |= {"UnrecognizedClientException", "SignatureDoesNotMatch"}
_OFF = "RegionDisabledException"
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "Client.UnauthorizedOperation"}
_WHO = "aws sts get-caller-identity"
_KNOWN: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError),
        "there are no AWS credentials here",
        "aws configure, or trainctl --profile NAME ...",
    ),
    ((aws.ProfileNotFound,), "{}", "aws configure list-profiles, then trainctl --profile NAME ..."),
    (
        (aws.InvalidRegionError,),
        "{}",
        "trainctl --region us-east-1 ..., or export AWS_REGION=...",
    ),
    (
        (aws.NoRegionError,),
        "no AWS region is given",
        "trainctl --region us-east-1 ..., or export AWS_REGION=...",
    ),
    (
        (aws.SSOTokenLoadError, aws.UnauthorizedSSOTokenError, aws.TokenRetrievalError),
        "the sign-in has expired",
        "aws sso login",
    ),
    ((aws.LoginError,), "the sign-in has ended, or is not valid: {}", "aws login"),
    (
        (aws.MissingDependencyException,),
        "boto3 lacks a package that this kind of sign-in needs: {}",
        "pip install -r requirements.txt, in this Python environment",
    ),
    (
        (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ConnectionError),
        "AWS cannot be reached: {}",
        f"{_WHO}; is there a network, and is the region spelled correctly?",
    ),
)


def explain(error: aws.BotoCoreError | aws.ClientError | ResponseParserError) -> str:
    """Return a sentence that names the problem, and the command to type."""
    if isinstance(error, aws.ClientError):
        return _refused(error)
    if isinstance(error, ResponseParserError):  # which is no BotoCoreError; the page follows in further lines
        return _lines(
            f"the answer is not AWS's, but perhaps a page of a proxy: {str(error).splitlines()[0]}",
            "env | grep -i proxy; aws sts get-caller-identity; AWS's addresses belong in NO_PROXY, or the "
            "proxy wants a sign-in",
        )
    for kinds, what, type_ in _KNOWN:
        if isinstance(error, kinds):
            return _lines(what.format(error), type_)
    return _lines(f"AWS gave no answer: {error}", _WHO)


def enable_region_command(region: str) -> str:
    """Return the command that enables a region, for the account's administrator; it takes minutes."""
    return f"aws account enable-region --region us-east-1 --region-name {region}"


def _refused(error: aws.ClientError) -> str:
    code, said = error.response["Error"].get("Code", ""), str(error)
    if (code in _EXPIRED or code == _OFF) and (region := region_turned_off()):
        return _lines(
            f"the region {region} is not enabled in this account ({code})", enable_region_command(region)
        )
    if code in _EXPIRED:
        return _lines(f"AWS does not accept these credentials ({code})", f"{_WHO}; then sign in again")
    if code in DENIED:
        return _lines(
            f"these credentials may not do that: {said}", f"{_WHO}; then ask for the permission that is named"
        )
    return _lines(f"AWS refused: {said}", _WHO)


def _lines(what: str, type_: str) -> str:
    return f"{what}\n  type:   {type_}"
