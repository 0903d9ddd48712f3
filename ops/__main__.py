"""`trainctl`, and `python -m ops`: what `make status`, `make teardown-plan` and `make preflight` call.

Exit codes: 0 done, 1 failed or found something, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys

from ops.account.options import with_account
from ops.cli import app
from training_cluster.problems import ConfigurationError

_ANYWHERE = ("--region", "--profile")


def main() -> int:
    """Parse the command line; one message and an exit code for whatever goes wrong."""
    arguments = _account_first(sys.argv[1:])
    command = next(iter(_without_account(arguments)), "trainctl")
    try:
        app(arguments, prog_name="trainctl")
    except ConfigurationError as error:
        from ops.usage import UsageError

        print(with_account(str(error)), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:  # trainctl ... | head
        sys.stderr.close()
        return 1
    except Exception as error:
        # boto3 takes a third of a second to load: only where it was needed can it have failed.
        from botocore.exceptions import BotoCoreError, ClientError

        if not isinstance(error, BotoCoreError | ClientError):
            raise
        from ops.account.aws_errors import explain

        print(f"{command}: {with_account(explain(error))}", file=sys.stderr)
        return 1
    return 0


def _account_first(arguments: list[str]) -> list[str]:
    """With --region and --profile before the subcommand, wherever they were typed."""
    first, rest, words = list[str](), list[str](), iter(arguments)
    for word in words:
        if word == "--":
            return [*first, *rest, word, *words]
        if word in _ANYWHERE:
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word.startswith(tuple(f"{each}=" for each in _ANYWHERE)):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest]


def _without_account(arguments: list[str]) -> list[str]:
    """Drop --region and --profile, which come first, with their values."""
    words = iter(arguments)
    for word in words:
        if word in _ANYWHERE:
            next(words, None)
        elif not word.startswith("-"):
            return [word, *words]
    return []


if __name__ == "__main__":
    sys.exit(main())
