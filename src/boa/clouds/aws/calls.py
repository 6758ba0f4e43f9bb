"""Every call to AWS: how long it may take, and what it means when it fails.

What is changed at AWS is changed by `Api.change` and nowhere else.
"""

from collections.abc import Iterator
from typing import Any

from boa.clouds.base import CloudTrouble
from boa.errors import BoaError, InputError
from boa.model.provider_settings import AwsSettings

ATTEMPTS = 4
"""Attempts of a call that may be repeated: botocore waits between them, up to 20 s."""
CONNECT_S, READ_S = 5, 20
REPEATABLE = ("terminate_instances", "delete_launch_template")
"""Changes that do no more the second time. To create anything again blindly may create two."""
PAGE = 1000
CREDENTIALS = "credentials that AWS accepts, where boto3 finds them: see docs/aws.md"
_REFUSED = "the credentials are not accepted: see docs/aws.md"
MEND = {
    "UnauthorizedOperation": "the IAM policy does not allow it: see docs/aws.md",
    "AuthFailure": _REFUSED,
    "InvalidClientTokenId": _REFUSED,
    "UnrecognizedClientException": _REFUSED,
    "SignatureDoesNotMatch": _REFUSED,
    "ExpiredToken": "the credentials have expired: renew them",
    "RequestExpired": "the credentials have expired, or this machine's clock is wrong",
    "OptInRequired": "the account has no access to this: see the AWS console",
    "PendingVerification": "AWS is still checking the account for this region",
    "InvalidAMIID": "mend aws.image",
    "InvalidSubnetID": "mend aws.subnets",
    "InvalidSubnet": "mend aws.subnets",
    "InvalidGroup": "mend aws.security_groups",
    "InvalidKeyPair": "mend aws.key_name",
    "InvalidIamInstanceProfile": "mend aws.instance_profile",
    "InvalidFleetConfig": "mend aws.machines and aws.subnets",
    "InvalidParameterValue": "mend the aws section of the config file",
}
"""Advice by error code, or by the part of it before the dot."""


class AwsFailed(CloudTrouble):
    """AWS said no, in its own words; or nothing at all (code "")."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        self.operation, self.code, self.message = operation, code, message
        said = f"{message} ({code})" if code else message
        super().__init__(f"AWS, {operation}: {said}{hint(code)}")


def hint(code: str) -> str:
    mend = MEND.get(code) or MEND.get(code.partition(".")[0])
    return f"; {mend}" if mend else ""


class Api:
    """EC2 in one region. Raises AwsFailed, whatever it was."""

    def __init__(self, settings: AwsSettings) -> None:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError:
            raise BoaError("boto3 is not installed: pip install 'boa-constrictor[aws]'") from None

        def client(service: str, attempts: int) -> Any:
            config = Config(
                retries={"mode": "standard", "total_max_attempts": attempts},
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                user_agent_extra="boa-constrictor",
            )
            try:
                return boto3.client(
                    service,
                    region_name=settings.region,
                    endpoint_url=settings.endpoint,
                    config=config,
                )
            except ValueError as problem:  # so botocore says that a host cannot be one
                raise InputError("aws.region", settings.region, "a region of AWS") from problem
            except BotoCoreError as problem:  # half of a key, or a profile that is not there
                raise InputError("AWS", None, CREDENTIALS, str(problem)) from problem

        self._patient, self._once = client("ec2", ATTEMPTS), client("ec2", 1)
        self._sts = client("sts", ATTEMPTS)

    def identity(self) -> str:
        """Whose credentials these are."""
        return str(_call(self._sts, "get_caller_identity", {})["Arn"])

    def read(self, operation: str, **params: Any) -> dict[str, Any]:
        return _call(self._patient, operation, params)

    def pages(self, operation: str, **params: Any) -> Iterator[dict[str, Any]]:
        try:
            yield from self._patient.get_paginator(operation).paginate(**params)
        except Exception as problem:
            raise _failed(operation, problem) from problem

    def change(self, operation: str, **params: Any) -> dict[str, Any]:
        """The only way by which anything at AWS is changed."""
        client = self._patient if operation in REPEATABLE else self._once
        return _call(client, operation, params)

    def would(self, operation: str, **params: Any) -> str:
        """AWS's objection to a change that is only tried: "" if it would be done."""
        try:
            _call(self._patient, operation, {**params, "DryRun": True})
        except AwsFailed as failed:
            return "" if failed.code == "DryRunOperation" else str(failed)
        return "AWS did not understand that this was a trial"


def _call(client: Any, operation: str, params: dict[str, Any]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = getattr(client, operation)(**params)
    except Exception as problem:
        raise _failed(operation, problem) from problem
    return answer


def _failed(operation: str, problem: Exception) -> AwsFailed:
    """botocore's errors have no common ancestor, and an answer that is no XML may raise any."""
    said = (getattr(problem, "response", None) or {}).get("Error", {})
    code, message = str(said.get("Code", "")), said.get("Message") or str(problem)
    return AwsFailed(operation, code, message.strip().split("\n")[0])
